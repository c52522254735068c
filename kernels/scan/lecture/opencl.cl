// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which has one element. Groups
//   cannot wait for each other. So each computes its own sums, a second kernel what comes before each group, and a third
//   one adds that.
// Memory: neighbouring work items read and write neighbouring elements of global memory. A GPU coalesces these accesses
//   into few transactions. A group's sums lie in local memory. There each item adds the sum before it, then the one two
//   places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others have read.
// Edges: work items past the last element add 0. Where n is 0, there still is a group, which leaves its sum.
// ---
// Work items of scan_groups: n, in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: n, in groups of 256
// Scratch: ceil(n / 256) + 1 elements of Sum

void scan_group(Sum own, local Sum* sums) {
  const long item = get_local_id(0);
  sums[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long apart = 1; apart < 256; apart *= 2) {
    const Sum before = item < apart ? 0 : sums[item - apart];
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] += before;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

kernel void scan_groups(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  const long i = get_global_id(0);
  scan_group(i < n ? widen(a[i]) : 0, sums);
  if (i < n) c[i] = sums[get_local_id(0)];
  if (get_local_id(0) == 0) scratch[get_group_id(0)] = sums[255];
}

kernel void scan_sums(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  Sum before = 0;
  for (long first = 0; first * 256 < n; first += 256) {
    const long i = first + get_local_id(0);
    scan_group(i * 256 < n ? scratch[i] : 0, sums);
    if (i * 256 < n) scratch[i] = before + sums[get_local_id(0)];
    before += sums[255];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

kernel void scan(global const T* a, global Sum* c, global Sum* scratch, long n) {
  const long i = get_global_id(0);
  if (256 <= i && i < n) c[i] += scratch[i / 256 - 1];
}
