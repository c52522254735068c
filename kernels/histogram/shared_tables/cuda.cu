// histogram: c[k] = how many of a[i] lie in [k / 256, (k + 1) / 256), of n; of int8, how many are k - 128.
// Idea: a block has a table of its own, in shared memory. Only threads of a block meet there, and updates take a fraction
//   of the time that they take in global memory. A thread counts 16 elements, so that few tables are added to c.
// Model: all threads set the table to 0, and then count. Then each adds one of its counters to that of all, by an
//   atomic update. At each barrier all wait for one another. A first kernel sets c to 0.
// Memory: neighbouring threads read neighbouring elements, which a warp does in few transactions.
// Edges: the loop of the last block ends at n. What lies outside of [0, 1), NaN too, is counted nowhere.
// ---
// Work items of clear: 256, in groups of 256
// Work items: ceil(n / 16), in groups of 256
// Formats: float32, float64

template <typename T>
__global__ void clear(const T* a, int* c, long long n) {
  c[threadIdx.x] = 0;
}

template <typename T>
__global__ void histogram(const T* a, int* c, long long n) {
  __shared__ int table[256];
  const long long begin = (long long)blockIdx.x * 4096, end = begin + 4096;
  table[threadIdx.x] = 0;
  __syncthreads();
  for (long long i = begin + threadIdx.x; i < (end < n ? end : n); i += 256) {
    const T at = 256 * a[i];
    if (at >= 0 && at < 256) atomicAdd(table + (int)at, 1);
  }
  __syncthreads();
  if (table[threadIdx.x] > 0) atomicAdd(c + threadIdx.x, table[threadIdx.x]);
}
