// multiply_add: `steps` times 8 multiply-adds of single elements in each thread of a GPU, in registers alone.
// Model: 8 chains of fused multiply-adds that do not wait for one another, in as many warps as a multiprocessor holds.
// Memory: a holds the factor and the addend. c has one element a thread, so that the compiler cannot leave out the
//   work.
// Edges: none; c has an element for every thread.
template <typename T>
__global__ void multiply_add(const T* a, T* c, long long steps) {
  constexpr int chains = 8;
  const T factor = a[0], addend = a[1];
  T sum[chains];
#pragma unroll
  for (int chain = 0; chain < chains; ++chain) sum[chain] = T(chain);
#pragma unroll 16
  for (long long step = 0; step < steps; ++step) {
#pragma unroll
    for (int chain = 0; chain < chains; ++chain) sum[chain] = sum[chain] * factor + addend;
  }
#pragma unroll
  for (int chain = 1; chain < chains; ++chain) sum[0] += sum[chain];
  c[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = sum[0];
}
