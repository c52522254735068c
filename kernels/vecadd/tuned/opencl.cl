// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: on a CPU, a work item adds a chunk in full vectors, and stores past the cache. An ordinary store first reads
//   the line that it overwrites, a quarter of all traffic here. On a GPU, an item adds four neighbours.
// Memory: where the vectors exceed the device's cache, c is streamed to memory. Else it stays in the cache, where its
//   reader wants it.
// Edges: one element at a time after the last full vector, and where c is streamed also until c is aligned.
// ---
// Work items on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: ceil(n / 4), in groups of 256

#if CPU

#if FORMAT_bfloat16

// Two elements are added where they lie, in a lane of 32 bits. Widened one by one they would move to other lanes, and
// back, which costs more than adding them.
#define JOINED_AS_THEY_ARE(x, y) x##y
#define JOINED(x, y) JOINED_AS_THEY_ARE(x, y)
#define AS_SUMS JOINED(as_, Sums)
#define Vector JOINED(uint, WIDTH)

/// The sums of floats, with what rounds their upper half. CPUs make NaN of a NaN that they add, or one of their own. The
/// lower half of both is zero, so nothing is carried that would change NaN.
__attribute__((always_inline)) Vector rounded(Vector x, Vector y) {
  const Vector bits = JOINED(as_uint, WIDTH)(AS_SUMS(x) + AS_SUMS(y));
  return bits + 0x7fffu + (bits >> 16 & 1u);
}

__attribute__((always_inline)) Vector added(Vector x, Vector y) {
  return rounded(x << 16, y << 16) >> 16 | (rounded(x & 0xffff0000u, y & 0xffff0000u) & 0xffff0000u);
}

#else

#define Vector V
__attribute__((always_inline)) Vector added(Vector x, Vector y) { return narrow(widen(x) + widen(y)); }

#endif

/// Elements of one work item: some pages, so that neighbours rarely share one.
enum { chunk = 65536, lanes = sizeof(Vector) / sizeof(T) };

/// A vector that begins at any element. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  Vector v;
} Loose;

/// Elements between what is added and what is prefetched: a page, with which the CPU's own prefetching ends. In the
/// 16-bit formats so many instructions stand between loads that too few of them are under way.
enum { ahead = 4096 / sizeof(T) };
__attribute__((always_inline)) void fetch(global const T* a, global const T* b) {
  __builtin_prefetch((const void*)(ulong)a);
  __builtin_prefetch((const void*)(ulong)b);
}

/// How many elements from c on come before the first that is aligned as a vector.
long before_aligned(global T* c) { return (sizeof(Vector) - (ulong)c % sizeof(Vector)) % sizeof(Vector) / sizeof(T); }

/// Adds the full vectors between `begin` and `end`, and returns where they end. Each kind of store has a loop of its
/// own: compilers turn both kinds in one loop into ordinary stores.
long add(global const T* a, global const T* b, global T* c, long begin, long end) {
  long i = begin;
  for (; i + lanes <= end; i += lanes) {
    ((global Loose*)(c + i))->v = added(((global const Loose*)(a + i))->v, ((global const Loose*)(b + i))->v);
  }
  return i;
}

/// The same, past the cache. c has to be aligned.
long add_streamed(global const T* a, global const T* b, global T* c, long begin, long end) {
  long i = begin;
#pragma unroll 4
  for (; i + lanes <= end; i += lanes) {
    if (sizeof(T) == 2) fetch(a + i + ahead, b + i + ahead);
    const Vector sum = added(((global const Loose*)(a + i))->v, ((global const Loose*)(b + i))->v);
    __builtin_nontemporal_store(sum, (global Vector*)(c + i));
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);  // other threads see streamed stores only after this
  return i;
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void vecadd(global const T* a, global const T* b, global T* c,
                                                                  long n) {
  const bool streamed = 3 * n * (long)sizeof(T) > CACHE_BYTES;
  long i = get_global_id(0) * chunk;
  const long end = min(n, i + chunk), aligned = streamed ? min(end, i + before_aligned(c + i)) : i;
  for (; i < aligned; ++i) c[i] = narrow(widen(a[i]) + widen(b[i]));
  i = streamed ? add_streamed(a, b, c, i, end) : add(a, b, c, i, end);
  for (; i < end; ++i) c[i] = narrow(widen(a[i]) + widen(b[i]));
}

#else

kernel void vecadd(global const T* a, global const T* b, global T* c, long n) {
  const long i = get_global_id(0) * 4;
  if (i + 4 <= n) {
    vstore4(narrow(widen(vload4(0, a + i)) + widen(vload4(0, b + i))), 0, c + i);
  } else {
    for (long j = i; j < n; ++j) c[j] = narrow(widen(a[j]) + widen(b[j]));
  }
}

#endif
