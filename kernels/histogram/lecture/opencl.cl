// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which counts one element. Many
//   items may meet at a counter. So the update is atomic: it reads, adds and writes, and no other comes between.
//   Groups cannot wait for each other, so a first kernel sets the counters to 0.
// Memory: neighbouring work items read neighbouring elements of global memory. A GPU coalesces these accesses into few
//   transactions. Updates of one counter wait for one another.
// Edges: work items past the last element do nothing. What lies outside of [0, 1), NaN too, is counted nowhere.
// ---
// Work items of clear: 256, in groups of 256
// Work items: n, in groups of 256

kernel void clear(global const T* a, global int* c, long n) { c[get_global_id(0)] = 0; }

kernel void histogram(global const T* a, global int* c, long n) {
  const long i = get_global_id(0);
  if (i >= n) return;
  const Sum at = sizeof(T) == 1 ? widen(a[i]) + 128 : 256 * widen(a[i]);
  if (at >= 0 && at < 256) atomic_inc(c + (long)at);
}
