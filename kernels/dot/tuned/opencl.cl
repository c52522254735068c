// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: more work for each item, so that few sums are left for the second kernel. On a CPU, an item adds up a chunk in
//   four vectors of sums, and no addition waits for another. On a GPU, it adds 16 products, one of each row of
//   neighbours.
// Model: groups cannot wait for each other, so the first kernel leaves a sum of each. The second one adds these up in a
//   fixed order.
// Memory: reads a and b once. An item of a CPU reads its chunk in order. Neighbouring items of a GPU read neighbouring
//   elements, and add up their sums in local memory.
// Edges: on a CPU, one product at a time after the last full vectors. Where n is 0, there still is a group, which
//   writes its sum.
// ---
// Work items of add_chunk on a CPU: ceil(n / 65536), in groups of 1
// Work items on a CPU: 1, in groups of 1
// Scratch on a CPU: ceil(n / 65536) + 1 elements of Sum
// Work items of add_rows on a GPU: ceil(n / 16), in groups of 256
// Work items on a GPU: 256, in groups of 256
// Scratch on a GPU: ceil(n / 4096) + 1 elements of Sum

#if CPU

enum { chunk = 65536, lanes = sizeof(Sums) / sizeof(Sum), vectors = 4 };

/// A vector that begins at any element. (vload would do, but is a call in PoCL.)
typedef struct __attribute__((packed)) {
  V v;
} Loose;

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void add_chunk(global const T* a, global const T* b,
                                                                     global Sum* c, global Sum* scratch, long n) {
  long i = get_global_id(0) * chunk;
  const long end = min(n, i + chunk);
  Sums sums[vectors];
#pragma unroll
  for (int at = 0; at < vectors; ++at) sums[at] = 0;
  for (; i + vectors * lanes <= end; i += vectors * lanes) {
#pragma unroll
    for (int at = 0; at < vectors; ++at) {
      const V x = ((global const Loose*)(a + i))[at].v, y = ((global const Loose*)(b + i))[at].v;
      sums[at] += widen(x) * widen(y);
    }
  }
  const Sums of_lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Sum sum = 0;
  for (int lane = 0; lane < lanes; ++lane) sum += ((const Sum*)&of_lanes)[lane];
  for (; i < end; ++i) sum += widen(a[i]) * widen(b[i]);
  scratch[get_global_id(0)] = sum;
}

__attribute__((reqd_work_group_size(1, 1, 1))) kernel void dot(global const T* a, global const T* b, global Sum* c,
                                                               global Sum* scratch, long n) {
  Sum sum = 0;
  for (long i = 0; i * chunk < n; ++i) sum += scratch[i];
  *c = sum;
}

#else

enum { items = 256, rows = 16, chunk = items * rows };

/// Adds up a sum of each item of a group. Half of them add those of the other half, then a quarter, and so on.
void add_up(Sum own, local Sum* sums, global Sum* to) {
  const int item = get_local_id(0);
  sums[item] = own;
  for (int apart = items / 2; apart > 0; apart /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < apart) sums[item] += sums[item + apart];
  }
  if (item == 0) *to = sums[0];
}

kernel void add_rows(global const T* a, global const T* b, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[items];
  const long begin = get_group_id(0) * chunk, end = min(n, begin + chunk);
  Sum sum = 0;
#pragma unroll 4
  for (long i = begin + get_local_id(0); i < end; i += items) sum += widen(a[i]) * widen(b[i]);
  add_up(sum, sums, scratch + get_group_id(0));
}

kernel void dot(global const T* a, global const T* b, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[items];
  Sum sum = 0;
  for (long i = get_local_id(0); i * chunk < n; i += items) sum += scratch[i];
  add_up(sum, sums, c);
}

#endif
