// vecadd: c[i] = a[i] + b[i] for vectors of n elements.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which adds one element. The
//   range of work items covers c.
// Memory: neighbouring work items read and write neighbouring elements of global memory. A GPU coalesces these accesses
//   into few transactions.
// Edges: work items past the last element do nothing.
// ---
// Work items: n, in groups of 256

kernel void vecadd(global const T* a, global const T* b, global T* c, long n) {
  const long i = get_global_id(0);
  if (i < n) c[i] = narrow(widen(a[i]) + widen(b[i]));
}
