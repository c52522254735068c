// transpose: c[i, j] = a[j, i]. a is n x m, c is m x n, both stored by rows.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which moves one element. The
//   range of work items covers c.
// Memory: neighbouring work items write neighbours of a row of c. A GPU coalesces these writes into few transactions.
//   They read elements of a column of a, which lie m apart.
// Edges: work items past the last column or row do nothing.
// ---
// Work items: n x m, in groups of 16 x 16

kernel void transpose(global const T* a, global T* c, long m, long n) {
  const long j = get_global_id(0);
  const long i = get_global_id(1);
  if (i < m && j < n) c[i * n + j] = a[j * m + i];
}
