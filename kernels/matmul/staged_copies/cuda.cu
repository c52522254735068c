// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: copies to shared memory are started two slices ahead and go on by themselves, by the instruction cp.async.
//   While a slice is multiplied the next two arrive, and nobody waits for memory that was asked for just now.
// Model: as in register_tiles/cuda.cu: 128 threads compute a tile of c of 128 x 64, 8 x 8 elements each. With three
//   slices in shared memory one barrier a slice is enough: what is overwritten was read before the last one.
// Memory: what is copied passes no register. A thread waits for its own copies, then the barrier for everybody's.
//   Before compute capability 8.0 there is no such instruction, and a copy has arrived when it has started.
// Edges: every thread goes to every barrier, so none returns early. Beyond the ends slices hold zeros, which add
//   nothing, and sums are not written. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: ceil(n / 2) x ceil(m / 32), in groups of 32 x 4
// Formats: float32, float64

namespace {

using Size = long long;
constexpr int threads_down = 16, threads_across = 8, threads = threads_down * threads_across;
constexpr int down = 8, across = 8, rows = threads_down * down, columns = threads_across * across;  // sums; a tile
constexpr int depth = 8;   // columns of a and rows of b in one slice: products between two barriers
constexpr int slices = 3;  // one is multiplied while the others arrive

template <typename T>
struct Slice {
  T a[rows][depth], b[depth][columns];
};

#if defined(__CUDA_ARCH__)
constexpr bool asynchronous = __CUDA_ARCH__ >= 800;

/// Of one thread.
struct Copies {
  /// Starts to copy an element to shared memory, or zero where it is not `there`.
  template <typename T>
  __device__ void start(T* to, const T* from, bool there) {
    if constexpr (asynchronous) {
      const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
      const int bytes = there ? sizeof(T) : 0;  // to read; the others are zero
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(sizeof(T)),
                   "r"(bytes));
    } else {
      *to = there ? *from : T(0);
    }
  }
  __device__ void end_group() {
    if constexpr (asynchronous) asm volatile("cp.async.commit_group;" ::: "memory");
  }
  /// Waits for all groups but the `latest` ones.
  template <int latest>
  __device__ void wait() {
    if constexpr (asynchronous) asm volatile("cp.async.wait_group %0;" ::"n"(latest) : "memory");
  }
};
#else
using Copies = cuda_on_sycl::LateCopies;  // of the emulation
#endif

/// Starts to copy the slice that begins at p, for the tile of c that begins at row i and column j.
template <typename T>
__device__ void copy(Copies& copies, Slice<T>& to, int thread, const T* a, const T* b, Size i, Size j, Size p, Size m,
                     Size n, Size k) {
  for (int e = thread; e < rows * depth; e += threads) {
    const int r = e / depth, q = e % depth;
    copies.start(&to.a[r][q], a + (i + r) * k + p + q, i + r < m && p + q < k);
  }
  for (int e = thread; e < depth * columns; e += threads) {
    const int q = e / columns, s = e % columns;
    copies.start(&to.b[q][s], b + (p + q) * n + j + s, p + q < k && j + s < n);
  }
  copies.end_group();
}

/// Adds the products of a slice to the sums of the thread in that row and column of the block.
template <typename T>
__device__ void multiply(const Slice<T>& slice, int row, int column, T (&sum)[down][across]) {
#pragma unroll
  for (int q = 0; q < depth; ++q) {
    T of_b[across];
    for (int s = 0; s < across; ++s) of_b[s] = slice.b[q][column + s * threads_across];
    for (int r = 0; r < down; ++r) {
      const T of_a = slice.a[row + r * threads_down][q];
      for (int s = 0; s < across; ++s) sum[r][s] += of_a * of_b[s];
    }
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ Slice<T> shared[slices];
  const int thread = 32 * threadIdx.y + threadIdx.x, row = thread / threads_across, column = thread % threads_across;
  const Size j = (long long)blockIdx.x * columns;
  for (Size i = (long long)blockIdx.y * rows; i < m; i += (long long)gridDim.y * rows) {
    T sum[down][across] = {};
    Copies copies;
    for (int s = 0; s < slices - 1; ++s) copy(copies, shared[s], thread, a, b, i, j, s * depth, m, n, k);
    int arrived = 0, free = slices - 1;
    for (Size p = 0; p < k; p += depth) {
      copies.wait<slices - 2>();
      __syncthreads();  // everybody's copies of the slice have arrived, and nobody reads the one before
      copy(copies, shared[free], thread, a, b, i, j, p + (slices - 1) * depth, m, n, k);
      multiply(shared[arrived], row, column, sum);
      free = arrived;
      arrived = (arrived + 1) % slices;
    }
    copies.wait<0>();
    __syncthreads();  // the next tile begins where this one ends
    for (int r = 0; r < down; ++r) {
      for (int s = 0; s < across; ++s) {
        const Size to_row = i + row + r * threads_down, to_column = j + column + s * threads_across;
        if (to_row < m && to_column < n) c[to_row * n + to_column] = sum[r][s];
      }
    }
  }
}
