// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which computes one product.
//   Groups cannot wait for each other. So each adds up its own products, and one group of a second kernel the sums.
// Memory: neighbouring work items read neighbouring elements of global memory. A GPU coalesces these accesses into few
//   transactions. A group's sums lie in local memory: half of the items add those of the other half, then a quarter,
//   and so on. At each barrier all wait until the others have added.
// Edges: work items past the last element add 0. Where n is 0, there still is a group, which writes its sum.
// ---
// Work items of add_products: n, in groups of 256
// Work items: 256, in groups of 256
// Scratch: ceil(n / 256) + 1 elements of Sum

void add_up(Sum own, local Sum* sums, global Sum* to) {
  const long item = get_local_id(0);
  sums[item] = own;
  for (long apart = 128; apart > 0; apart /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < apart) sums[item] += sums[item + apart];
  }
  if (item == 0) *to = sums[0];
}

kernel void add_products(global const T* a, global const T* b, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  const long i = get_global_id(0);
  add_up(i < n ? widen(a[i]) * widen(b[i]) : 0, sums, scratch + get_group_id(0));
}

kernel void dot(global const T* a, global const T* b, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  Sum sum = 0;
  for (long i = get_local_id(0); i * 256 < n; i += 256) sum += scratch[i];
  add_up(sum, sums, c);
}
