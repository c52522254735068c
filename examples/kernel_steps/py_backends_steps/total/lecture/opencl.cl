// total: the sum of a vector's elements. Every work item adds 1024 of them, and then one adds up the sums.
// ---
// Work items of parts: ceil(n / 1024), in groups of 64
// Work items of total: 1, in groups of 1
// Scratch: ceil(n / 1024) elements of Sum
kernel void parts(global const T* u, global T* c, global Sum* sums, long n) {
  const long first = get_global_id(0) * 1024;
  Sum sum = 0;
  for (long i = first; i < min(n, first + 1024); ++i) sum += u[i];
  if (first < n) sums[get_global_id(0)] = sum;
}

kernel void total(global const T* u, global T* c, global const Sum* sums, long n) {
  Sum sum = 0;
  for (long part = 0; part < (n + 1023) / 1024; ++part) sum += sums[part];
  c[0] = sum;
}
