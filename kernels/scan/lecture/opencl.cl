// scan: c[i] = a[0] + ... + a[i] for a vector of n elements.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which has one element. Groups
//   cannot wait for each other. So each computes its own sums, one group of a second kernel the sums of their last
//   ones, and a third kernel adds these.
// Memory: neighbouring work items read and write neighbouring elements of global memory. A GPU coalesces these accesses
//   into few transactions. A group's sums lie in local memory. There each item adds the sum before it, then the one two
//   places before, then four, and so on (Hillis and Steele). At each barrier all wait until the others have read.
// Edges: work items past the last element add 0, and so do groups past the last full one.
// ---
// Work items of scan_groups: n, in groups of 256
// Work items of scan_sums: 256, in groups of 256
// Work items: n, in groups of 256
// Scratch: ceil(n / 65536) * 256 + 1 elements of Sum

Sum scan_group(Sum sum, local Sum* sums) {
  const long item = get_local_id(0);
  for (long apart = 1; apart < 256; apart *= 2) {
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= apart) sum += sums[item - apart];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return sum;
}

kernel void scan_groups(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  const long i = get_global_id(0);
  const Sum sum = scan_group(i < n ? widen(a[i]) : 0, sums);
  if (i < n) c[i] = sum;
}

kernel void scan_sums(global const T* a, global Sum* c, global Sum* scratch, long n) {
  local Sum sums[256];
  for (long first = 0; first * 256 < n; first += 256) {
    const long i = first + get_local_id(0);
    const Sum before = i == first && i > 0 ? scratch[i - 1] : 0;
    scratch[i] = scan_group(before + (i * 256 + 255 < n ? c[i * 256 + 255] : 0), sums);
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}

kernel void scan(global const T* a, global Sum* c, global Sum* scratch, long n) {
  const long i = get_global_id(0);
  if (256 <= i && i < n) c[i] += scratch[i / 256 - 1];
}
