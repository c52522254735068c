// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: on a CPU, a work item adds a stretch in full vectors, and stores past the cache: an ordinary store reads the
//   line that it is about to overwrite, a quarter of all traffic here. On a GPU, an item adds four neighbours.
// Work items on a CPU: ceil(n / 65536), in groups of 1
// Work items on a GPU: ceil(n / 4), in groups of 256
// Memory: where the vectors exceed the device's cache, c is streamed to memory; else it stays in the cache, in which
//   its reader will want it.
// Edges: one element at a time, until c is aligned where it is streamed, and after the last full vector.

#if CPU

/// Elements of one work item: some pages, so that neighbours rarely share one.
enum { stretch = 65536, lanes = sizeof(V) / sizeof(T) };

/// A vector that lies anywhere. (vload and vstore would do, but are calls in PoCL.)
typedef struct __attribute__((packed)) {
  V v;
} Loose;

/// How many of the elements from c on come before the first that is aligned as a vector.
long before_aligned(global T* c) { return (sizeof(V) - (ulong)c % sizeof(V)) % sizeof(V) / sizeof(T); }

/// Adds the full vectors from `begin` on that end before `end`, and returns where they end. Two loops, since a compiler
/// that finds both stores in one makes an ordinary store of them.
long add(global const T* a, global const T* b, global T* c, long begin, long end) {
  long i = begin;
  for (; i + lanes <= end; i += lanes) {
    const Sums sum = widen(((global const Loose*)(a + i))->v) + widen(((global const Loose*)(b + i))->v);
    ((global Loose*)(c + i))->v = narrow(sum);
  }
  return i;
}

/// The same, past the cache, to c that is aligned.
long add_streamed(global const T* a, global const T* b, global T* c, long begin, long end) {
  long i = begin;
#pragma unroll 4
  for (; i + lanes <= end; i += lanes) {
    const Sums sum = widen(((global const Loose*)(a + i))->v) + widen(((global const Loose*)(b + i))->v);
    __builtin_nontemporal_store(narrow(sum), (global V*)(c + i));
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);  // streamed stores are seen by others only after this
  return i;
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void vecadd(global const T* a, global const T* b, global T* c,
                                                                  long n) {
  const bool streamed = 3 * n * (long)sizeof(T) > CACHE_BYTES;
  long i = get_global_id(0) * stretch;
  const long end = min(n, i + stretch), aligned = streamed ? min(end, i + before_aligned(c + i)) : i;
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
