// spmv: y = A x, for a sparse matrix A of m x n in CSR: its values, the column of each, and where each row begins.
// ---
// Work items: m, in groups of 64
kernel void spmv(global const T* values, global const int* columns, global const int* begins, global const T* x,
                 global T* y, long m, long nonzeros, long n) {
  const long i = get_global_id(0);
  if (i >= m) return;
  T sum = 0;
  for (int at = begins[i]; at < begins[i + 1]; ++at) sum += values[at] * x[columns[at]];
  y[i] = sum;
}
