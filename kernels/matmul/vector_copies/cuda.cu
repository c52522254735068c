// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: 16 bytes of b are copied by one instruction, and 16 bytes of c written by one. This takes aligned rows. Where
//   they are not, elements are copied and written one by one. So are those of a, whose rows become columns.
// Model: 2 x 2 warps compute a tile of c, in float64 of 128 x 64, with 8 x 8 elements a thread. With three slices in
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
constexpr int depth = 8;   // columns of a and rows of b in one slice: products between two barriers
constexpr int slices = 3;  // one is multiplied while the others arrive

__device__ __forceinline__ Size least(Size x, Size y) { return x < y ? x : y; }
__device__ __forceinline__ bool aligned(const void* address, int bytes) {
  return reinterpret_cast<unsigned long long>(address) % bytes == 0;
}

/// What one instruction reads or writes: neighbours, aligned as a whole.
template <typename T, int count>
struct alignas(count * sizeof(T)) Neighbours {
  static constexpr int size = count;
  T element[count];
};
/// At most: 16 bytes.
template <typename T>
using Vector = Neighbours<T, 16 / sizeof(T)>;

#if defined(__CUDA_ARCH__)
constexpr bool asynchronous = __CUDA_ARCH__ >= 800;

/// Of one thread.
struct Copies {
  /// Starts to copy an element or a vector to shared memory, or zero where it is not `there`.
  template <typename T>
  __device__ void start(T* to, const T* from, bool there) {
    if constexpr (asynchronous) {
      const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
      const int bytes = there ? sizeof(T) : 0;  // to read; the others are zero
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(sizeof(T)),
                   "r"(bytes));
    } else {
      *to = there ? *from : T{};
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

/// The part of c that a block computes at once: `down` x `across` sums of each thread.
template <typename Element, int down_, int across_>
struct Tile {
  using T = Element;
  static constexpr int down = down_, across = across_;
  static constexpr int rows = threads_down * down, columns = threads_across * across;
  /// From one column of a to the next in shared memory. Threads write neighbours of a row, which so lie in different
  /// banks.
  static constexpr int column_of_a = rows + Vector<T>::size;
  static constexpr int slice_of_a = depth * column_of_a, slice = slice_of_a + depth * columns;
};

/// Half of a thread's registers are sums: few instructions load and many multiply.
template <typename T>
using LargeTile = Tile<T, 8, 64 / sizeof(T)>;

/// A thread's part in copying slices of a and b, one after the other; b in chunks of `width` elements.
template <typename Tile, int width, typename T>
struct Copier {
  static constexpr int chunks = Tile::columns / width;  // of a row of b
  static constexpr int rows_at_once = threads / depth, copies_of_a = Tile::rows / rows_at_once;
  static constexpr int depth_at_once = threads / chunks, copies_of_b = depth / depth_at_once;
  static_assert(copies_of_b * depth_at_once == depth && copies_of_a * rows_at_once == Tile::rows);

  const T* a[copies_of_a];
  const T* b;
  Size n, k;
  int p_of_a, p_of_b;  // in the slice
  int to_a, to_b;
  Copies copies;

  /// For the tile of c that begins at row i and column j.
  __device__ __forceinline__ Copier(int thread, const T* a_, const T* b_, Size i, Size j, Size m, Size n_, Size k_)
      : n(n_), k(k_) {
    const int row = thread / depth, column = thread % chunks * width;
    p_of_a = thread % depth, p_of_b = thread / chunks;
#pragma unroll
    for (int s = 0; s < copies_of_a; ++s) a[s] = a_ + least(i + row + s * rows_at_once, m - 1) * k + p_of_a;
    b = b_ + p_of_b * n + least(j + column, n - width);
    to_a = p_of_a * Tile::column_of_a + row, to_b = Tile::slice_of_a + p_of_b * Tile::columns + column;
  }

  /// Starts to copy the slice that begins at p, as a group.
  __device__ __forceinline__ void start(T* slice, Size p) {
#pragma unroll
    for (int s = 0; s < copies_of_a; ++s) copy<1>(a[s] + p, slice + to_a + s * rows_at_once, p + p_of_a < k);
#pragma unroll
    for (int s = 0; s < copies_of_b; ++s, b += depth_at_once * n) {
      copy<width>(b, slice + to_b + s * depth_at_once * Tile::columns, p + p_of_b + s * depth_at_once < k);
    }
    copies.end_group();
  }

  template <int count>
  __device__ __forceinline__ void copy(const T* from, T* to, bool there) {
    copies.start(reinterpret_cast<Neighbours<T, count>*>(to), reinterpret_cast<const Neighbours<T, count>*>(from),
                 there);
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
template <typename Tile>
struct Place {
  static constexpr int vector = Vector<typename Tile::T>::size;
  static constexpr int stride_down = 8 * vector, stride_across = 4 * vector;
  int row, column;

  /// Threads of a warp that differ in bit 0 read the same of a, in bit 1 the same of b: then the hardware serves two
  /// quarters of the warp at once.
  __device__ __forceinline__ explicit Place(int thread) {
    const int warp = thread / 32;
    row = warp / 2 * (Tile::rows / 2) + (thread >> 1 & 7) * vector;
    column = warp % 2 * (Tile::columns / 2) + ((thread >> 3 & 2) + (thread & 1)) * vector;
  }
};

/// Adds the product of a slice of a and a slice of b to a thread's sums.
template <typename Tile, typename T>
__device__ __forceinline__ void multiply_slice(const T* slice, Place<Tile> at, T (&sum)[Tile::down][Tile::across]) {
#pragma unroll
  for (int p = 0; p < depth; ++p) {
    T column[Tile::down], row[Tile::across];
    read<Tile::down, Place<Tile>::stride_down>(slice + p * Tile::column_of_a + at.row, column);
    read<Tile::across, Place<Tile>::stride_across>(slice + Tile::slice_of_a + p * Tile::columns + at.column, row);
#pragma unroll
    for (int s = 0; s < Tile::across; ++s) {
#pragma unroll
      for (int t = 0; t < Tile::down; ++t) {
        const int r = s % 2 == 0 ? t : Tile::down - 1 - t;  // to and fro: neighbours share an operand, read once
        sum[r][s] += column[r] * row[s];
      }
    }
  }
}

/// Writes a thread's sums to the tile of c that begins at row i and column j, in chunks of `width`.
template <typename Tile, int width, typename T>
__device__ __forceinline__ void write(const T (&sum)[Tile::down][Tile::across], Place<Tile> at, T* c, Size i, Size j,
                                      Size m, Size n) {
  using Chunk = Neighbours<T, width>;
  constexpr int vector = Vector<T>::size;
#pragma unroll
  for (int r = 0; r < Tile::down; ++r) {
    const Size row = i + at.row + r / vector * Place<Tile>::stride_down + r % vector;
    if (row >= m) return;
#pragma unroll
    for (int s = 0; s < Tile::across; s += width) {
      const Size column = j + at.column + s / vector * Place<Tile>::stride_across + s % vector;
      if (column < n) *reinterpret_cast<Chunk*>(c + row * n + column) = *reinterpret_cast<const Chunk*>(&sum[r][s]);
    }
  }
}

/// Computes the tiles of c that are the block's.
template <typename Tile, int width, typename T>
__device__ __forceinline__ void multiply(T* shared, const T* a, const T* b, T* c, Size m, Size n, Size k) {
  const int thread = 32 * threadIdx.y + threadIdx.x;
  const Size j = (long long)blockIdx.x * Tile::columns;
  if (j >= n) return;  // all threads of the block: the grid is that of narrower tiles
  for (Size i = (long long)blockIdx.y * Tile::rows; i < m; i += (long long)gridDim.y * Tile::rows) {
    const Place<Tile> place(thread);
    alignas(16) T sum[Tile::down][Tile::across] = {};
    Copier<Tile, width, T> copier(thread, a, b, i, j, m, n, k);
    Copies& copies = copier.copies;
    for (int s = 0; s < slices - 1; ++s) copier.start(shared + s * Tile::slice, s * depth);
    int arrived = 0, free = slices - 1;
    for (Size p = 0; p < k; p += depth) {
      copies.wait<slices - 2>();
      __syncthreads();  // everybody's copies of the slice have arrived, and nobody reads the one before
      copier.start(shared + free * Tile::slice, p + (slices - 1) * depth);
      multiply_slice(shared + arrived * Tile::slice, place, sum);
      free = arrived;
      arrived = (arrived + 1) % slices;
    }
    copies.wait<0>();
    __syncthreads();  // the next tile begins where this one ends
    write<Tile, width>(sum, place, c, i, j, m, n);
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads) matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  using Tile = LargeTile<T>;
  __shared__ Vector<T> memory[slices * Tile::slice / Vector<T>::size];
  T* const shared = reinterpret_cast<T*>(memory);
  constexpr int width = Vector<T>::size;
  const bool vectors = n % width == 0 && aligned(b, 16) && aligned(c, 16);
  if (vectors) return multiply<Tile, width>(shared, a, b, c, m, n, k);
  multiply<Tile, 1>(shared, a, b, c, m, n, k);
}
