// axpy: z = alpha x + y for vectors of n elements, one a work item.
// ---
// Work items: n, in groups of 256
kernel void axpy(global const T* x, global const T* y, global T* z, long n, Sum alpha) {
  const long i = get_global_id(0);
  if (i < n) z[i] = alpha * x[i] + y[i];
}
