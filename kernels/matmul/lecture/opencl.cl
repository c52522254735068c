// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which computes one element.
//   The range of work items covers c.
// Memory: every work item reads a row of a and a column of b from global memory, through the caches. Neighbours read
//   the same element of a, and neighbours of b. A GPU coalesces those reads into few transactions.
// Edges: work items past the last column or row do nothing.
// ---
// Work items: n x m, in groups of 16 x 16

kernel void matmul(global const T* a, global const T* b, global Sum* c, long m, long n, long k) {
  const long j = get_global_id(0);
  const long i = get_global_id(1);
  if (i < m && j < n) {
    Sum sum = 0;
    for (long p = 0; p < k; ++p) sum += widen(a[i * k + p]) * widen(b[p * n + j]);
    c[i * n + j] = sum;
  }
}
