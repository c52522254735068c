// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Idea: more work for each item, so that few sums are left for the second kernel. An item adds up its elements before
//   anything is written, and computes their sums when it is known what comes before them. On a CPU, it does so for four
//   at once, and one addition of the four waits for those before. Where c exceeds the cache, it goes past it.
// Model: groups cannot wait for each other. So the first kernel leaves a sum of each chunk, the second one computes
//   what comes before each, in a fixed order, and the third one the result. On a CPU, an item has a chunk. On a GPU, a
//   group has one, and an item 8 elements that follow each other.
// Memory: reads a twice and writes c once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read
//   and write neighbouring elements. They exchange them in local memory, since an item needs others than it reads.
// Edges: on a CPU, one element at a time after the last four. Where n is 0, there still is a group, which leaves its
//   sum.
// ---
// Work items of sum_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items of scan_sums on a CPU: 1, in groups of 1
// Work items on a CPU: ceil(n / 65536), in groups of 1
// Scratch on a CPU: ceil(n / 65536) + 1 elements of Sum
// Work items of sum_rows on a GPU: ceil(n / 8), in groups of 256
// Work items of scan_sums on a GPU: 256, in groups of 256
// Work items on a GPU: ceil(n / 8), in groups of 256
// Scratch on a GPU: ceil(n / 2048) + 1 elements of Sum

#if CPU

enum { chunk = 65536, lanes = sizeof(Sums) / sizeof(Sum), vectors = 4 };

/// A vector that begins at any element. (vload would do, but is a call in PoCL.)
typedef struct __attribute__((packed)) {
  V v;
} Loose;

/// Four sums, which are stored at once.
#define JOINED_AS_THEY_ARE(x, y) x##y
#define JOINED(x, y) JOINED_AS_THEY_ARE(x, y)
#define Four JOINED(Sum, 4)
typedef struct __attribute__((packed)) {
  Four v;
} LooseFour;

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void sum_chunk(global const T* a, global Sum* c,
                                                                     global Sum* scratch, long n) {
  long i = get_global_id(0) * chunk;
  const long end = min(n, i + chunk);
  Sums sums[vectors];
#pragma unroll
  for (int at = 0; at < vectors; ++at) sums[at] = 0;
  for (; i + vectors * lanes <= end; i += vectors * lanes) {
#pragma unroll
    for (int at = 0; at < vectors; ++at) sums[at] += widen(((global const Loose*)(a + i))[at].v);
  }
  const Sums of_lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Sum sum = 0;
  for (int lane = 0; lane < lanes; ++lane) sum += ((const Sum*)&of_lanes)[lane];
  for (; i < end; ++i) sum += widen(a[i]);
  scratch[get_global_id(0)] = sum;
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void scan_sums(global const T* a, global Sum* c,
                                                                     global Sum* scratch, long n) {
  Sum before = 0;
  for (long i = 0; i * chunk < n; ++i) {
    const Sum sum = scratch[i];
    scratch[i] = before;
    before += sum;
  }
}

/// The sums of four elements and those before them: in pairs, then in fours.
__attribute__((always_inline)) Four sums_of(global const T* a) {
  const Sum x = widen(a[0]), y = widen(a[1]), z = widen(a[2]), w = widen(a[3]), of_two = x + y;
  return (Four)(x, of_two, of_two + z, of_two + (z + w));
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void scan(global const T* a, global Sum* c, global Sum* scratch,
                                                                long n) {
  const bool streamed = n * (long)(sizeof(T) + sizeof(Sum)) > CACHE_BYTES;
  long i = get_global_id(0) * chunk;
  const long end = min(n, i + chunk);
  Sum before = i < end ? scratch[get_global_id(0)] : 0;
  for (; i < end && streamed && (ulong)(c + i) % sizeof(Four) != 0; ++i) c[i] = before += widen(a[i]);
  // Each kind of store has a loop of its own: compilers turn both kinds in one loop into ordinary stores.
  if (streamed) {
    for (; i + 4 <= end; i += 4) {
      const Four sums = sums_of(a + i);
      __builtin_nontemporal_store(before + sums, (global Four*)(c + i));
      before += sums.w;
    }
    mem_fence(CLK_GLOBAL_MEM_FENCE);  // other threads see streamed stores only after this
  } else {
    for (; i + 4 <= end; i += 4) {
      const Four sums = sums_of(a + i);
      ((global LooseFour*)(c + i))->v = before + sums;
      before += sums.w;
    }
  }
  for (; i < end; ++i) c[i] = before += widen(a[i]);
}

#else

enum { items = 256, each = 8, chunk = items * each };

/// Puts the sum of each item and all before it into local memory, in log steps.
void scan_items(Sum own, local Sum* sums) {
  const int item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  sums[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int apart = 1; apart < items; apart *= 2) {
    const Sum before = item < apart ? 0 : sums[item - apart];
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] += before;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

kernel void sum_rows(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[items];
  const int item = get_local_id(0);
  const long begin = get_group_id(0) * chunk, end = min(n, begin + chunk);
  Sum sum = 0;
#pragma unroll 4
  for (long i = begin + item; i < end; i += items) sum += widen(a[i]);
  sums[item] = sum;
  for (int apart = items / 2; apart > 0; apart /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < apart) sums[item] += sums[item + apart];
  }
  if (item == 0) scratch[get_group_id(0)] = sums[0];
}

kernel void scan_sums(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[items];
  const int item = get_local_id(0);
  Sum before = 0;
  for (long first = 0; first * chunk < n; first += items) {
    const long i = first + item;
    const Sum own = i * chunk < n ? scratch[i] : 0;
    scan_items(own, sums);
    if (i * chunk < n) scratch[i] = before + (item > 0 ? sums[item - 1] : 0);
    before += sums[items - 1];
  }
}

kernel void scan(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum elements[chunk], sums[items];
  const int item = get_local_id(0);
  const long begin = get_group_id(0) * chunk, count = min(n - begin, (long)chunk);
#pragma unroll
  for (int at = item; at < chunk; at += items) elements[at] = at < count ? widen(a[begin + at]) : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  Sum own = 0;
#pragma unroll
  for (int e = 0; e < each; ++e) own += elements[item * each + e];
  scan_items(own, sums);
  Sum sum = (count > 0 ? scratch[get_group_id(0)] : 0) + (item > 0 ? sums[item - 1] : 0);
#pragma unroll
  for (int e = 0; e < each; ++e) elements[item * each + e] = sum += elements[item * each + e];
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int at = item; at < chunk; at += items) {
    if (at < count) c[begin + at] = elements[at];
  }
}

#endif
