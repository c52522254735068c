// smooth: u[i]/2 + (u[i-1] + u[i+1])/4, `steps` times; the ends stay. One element a work item, one step a launch.
// ---
// Work items: n, in groups of 256
// Repeat: steps
kernel void smooth(global const T* u, global T* c, long n, long steps) {
  const long i = get_global_id(0);
  if (i < n) c[i] = steps == 0 || i == 0 || i == n - 1 ? u[i] : u[i] / 2 + (u[i - 1] + u[i + 1]) / 4;
}
