// heat: c[i, j] = u[i, j] / 2 + (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) / 8, `steps` times; the boundary stays.
// Model: an open standard for CPUs, GPUs and more. A kernel is written for one work item, which computes one element of
//   one step. Groups cannot wait for each other, so each step is a launch of its own.
// Memory: each launch reads one array and writes another one, which the next launch reads. Neighbouring work items read
//   and write neighbours of a row. A GPU coalesces these accesses into few transactions.
// Edges: work items past the last column or row do nothing. Those of the boundary copy, as all do after 0 steps.
// ---
// Work items: n x m, in groups of 16 x 16
// Repeat: steps

kernel void heat(global const T* u, global T* c, long m, long n, long steps) {
  const long j = get_global_id(0);
  const long i = get_global_id(1);
  if (i >= m || j >= n) return;
  const long at = i * n + j;
  const bool stays = steps == 0 || i == 0 || i == m - 1 || j == 0 || j == n - 1;
  c[at] = stays ? u[at] : u[at] / 2 + (u[at - n] + u[at + n] + u[at - 1] + u[at + 1]) / 8;
}
