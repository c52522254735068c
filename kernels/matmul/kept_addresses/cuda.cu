// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: for each tile a thread computes once where it copies from, and where to. For a slice each copy then takes one
//   addition, and one comparison: whether the product is that deep.
// Model: 2 x 2 warps compute a tile of c of 128 x 64, of which a thread has 8 x 8 elements. With three slices in
//   shared memory one barrier a slice is enough: what is overwritten was read before the last one.
// Memory: a slice of a lies by columns, so that what a thread needs at once are neighbours there. One read brings 4
//   elements of float32, or 2 of float64. Columns are padded by a vector: threads that copy neighbours of a row then
//   write to different banks.
// Edges: beyond the last row or column a tile computes with the last one again, and writes nothing; beyond k it adds
//   zeros. Where the grid would be too high, blocks go on in strides of its height.
// ---
// Work items: ceil(n / 2) x ceil(m / 32), in groups of 32 x 4
// Formats: float32, float64

namespace {

using Size = long long;
constexpr int threads_down = 16, threads_across = 8, threads = threads_down * threads_across;
constexpr int down = 8, across = 8, rows = threads_down * down, columns = threads_across * across;  // sums; a tile
constexpr int depth = 8;   // columns of a and rows of b in one slice: products between two barriers
constexpr int slices = 3;  // one is multiplied while the others arrive

__device__ __forceinline__ Size least(Size x, Size y) { return x < y ? x : y; }

/// What one instruction reads or writes: neighbours, aligned as a whole.
template <typename T, int count>
struct alignas(count * sizeof(T)) Neighbours {
  static constexpr int size = count;
  T element[count];
};
/// At most: 16 bytes.
template <typename T>
using Vector = Neighbours<T, 16 / sizeof(T)>;

template <typename T>
struct alignas(16) Slice {
  T a[depth][rows + Vector<T>::size], b[depth][columns];
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

/// A thread's part in copying slices of a and b, one after the other.
template <typename T>
struct Copier {
  static constexpr int rows_at_once = threads / depth, copies_of_a = rows / rows_at_once;
  static constexpr int depth_at_once = threads / columns, copies_of_b = depth / depth_at_once;
  static_assert(copies_of_b * depth_at_once == depth && copies_of_a * rows_at_once == rows);

  const T* a[copies_of_a];
  const T* b;
  Size n, k;
  int p_of_a, p_of_b, row, column;  // in the slice
  Copies copies;

  /// For the tile of c that begins at row i and column j.
  __device__ __forceinline__ Copier(int thread, const T* a_, const T* b_, Size i, Size j, Size m, Size n_, Size k_)
      : n(n_), k(k_) {
    row = thread / depth, column = thread % columns;
    p_of_a = thread % depth, p_of_b = thread / columns;
#pragma unroll
    for (int s = 0; s < copies_of_a; ++s) a[s] = a_ + least(i + row + s * rows_at_once, m - 1) * k + p_of_a;
    b = b_ + p_of_b * n + least(j + column, n - 1);
  }

  /// Starts to copy the slice that begins at p, as a group.
  __device__ __forceinline__ void start(Slice<T>& slice, Size p) {
#pragma unroll
    for (int s = 0; s < copies_of_a; ++s) {
      copies.start(&slice.a[p_of_a][row + s * rows_at_once], a[s] + p, p + p_of_a < k);
    }
#pragma unroll
    for (int s = 0; s < copies_of_b; ++s, b += depth_at_once * n) {
      const int q = p_of_b + s * depth_at_once;
      copies.start(&slice.b[q][column], b, p + q < k);
    }
    copies.end_group();
  }
};

/// Reads `count` elements: vectors with `stride` elements from one to the next.
template <int count, int stride, typename T>
__device__ __forceinline__ void read(const T* from, T (&to)[count]) {
#pragma unroll
  for (int v = 0; v < count / Vector<T>::size; ++v) {
    const auto vector = *reinterpret_cast<const Vector<T>*>(from + v * stride);
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) to[v * Vector<T>::size + e] = vector.element[e];
  }
}

/// Where a thread's sums lie in the tile: in vectors, next to those of the other threads of its warp, so that a warp
/// reads 128 bytes of neighbours in shared memory.
template <typename T>
struct Place {
  static constexpr int vector = Vector<T>::size;
  static constexpr int stride_down = 8 * vector, stride_across = 4 * vector;
  int row, column;

  /// Threads of a warp that differ in bit 0 read the same of a, in bit 1 the same of b: then the hardware serves two
  /// quarters of the warp at once.
  __device__ __forceinline__ explicit Place(int thread) {
    const int warp = thread / 32;
    row = warp / 2 * (rows / 2) + (thread >> 1 & 7) * vector;
    column = warp % 2 * (columns / 2) + ((thread >> 3 & 2) + (thread & 1)) * vector;
  }
};

/// Adds the product of a slice of a and a slice of b to a thread's sums.
template <typename T>
__device__ __forceinline__ void multiply_slice(const Slice<T>& slice, Place<T> at, T (&sum)[down][across]) {
#pragma unroll
  for (int p = 0; p < depth; ++p) {
    T column[down], row[across];
    read<down, Place<T>::stride_down>(slice.a[p] + at.row, column);
    read<across, Place<T>::stride_across>(slice.b[p] + at.column, row);
#pragma unroll
    for (int s = 0; s < across; ++s) {
#pragma unroll
      for (int t = 0; t < down; ++t) {
        const int r = s % 2 == 0 ? t : down - 1 - t;  // to and fro: neighbours share an operand, read once
        sum[r][s] += column[r] * row[s];
      }
    }
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ Slice<T> shared[slices];
  const int thread = 32 * threadIdx.y + threadIdx.x, vector = Vector<T>::size;
  const Size j = (long long)blockIdx.x * columns;
  if (j >= n) return;  // without columns there still is a block, and b has no last column
  for (Size i = (long long)blockIdx.y * rows; i < m; i += (long long)gridDim.y * rows) {
    const Place<T> place(thread);
    T sum[down][across] = {};
    Copier<T> copier(thread, a, b, i, j, m, n, k);
    Copies& copies = copier.copies;
    for (int s = 0; s < slices - 1; ++s) copier.start(shared[s], s * depth);
    int arrived = 0, free = slices - 1;
    for (Size p = 0; p < k; p += depth) {
      copies.wait<slices - 2>();
      __syncthreads();  // everybody's copies of the slice have arrived, and nobody reads the one before
      copier.start(shared[free], p + (slices - 1) * depth);
      multiply_slice(shared[arrived], place, sum);
      free = arrived;
      arrived = (arrived + 1) % slices;
    }
    copies.wait<0>();
    __syncthreads();  // the next tile begins where this one ends
    for (int r = 0; r < down; ++r) {
      for (int s = 0; s < across; ++s) {
        const Size to_row = i + place.row + r / vector * Place<T>::stride_down + r % vector;
        const Size to_column = j + place.column + s / vector * Place<T>::stride_across + s % vector;
        if (to_row < m && to_column < n) c[to_row * n + to_column] = sum[r][s];
      }
    }
  }
}
