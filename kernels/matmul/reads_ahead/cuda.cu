// matmul: c = a b. a is m x k, b is k x n, c is m x n, all stored by rows.
// Idea: a thread reads what it multiplies next while it still multiplies, from the next slice too. So the barrier stands
//   before the last products of a slice, and they fill the time after it.
// Model: a block of threads computes a tile of c, whose sums stay in its threads' registers: what a thread reads once
//   from shared memory it multiplies 8 or 16 times. (CUTLASS, Efficient GEMM in CUDA.)
// Memory: slices of a and b are copied to shared memory, a by columns, while the slice before is multiplied. Threads
//   read from there in vectors of 16 bytes, and write to c as well, if their rows are aligned to that.
// Edges: beyond the last row or column a tile computes with the last one again, and writes nothing; beyond k it adds
//   zeros. The grid is that of small tiles; where it is too large to start, or the tiles are others, blocks take tiles
//   in strides.
// ---
// Work items: ceil(n / 2) x ceil(m / 16), in groups of 32 x 4
// Formats: float32, float64

namespace {

using Size = long long;
constexpr int threads = 128, threads_of_warp = 32;
constexpr int slices = 3;  // one is multiplied while the others arrive
constexpr Size band = 16;  // rows of tiles that are computed together

__device__ __forceinline__ Size least(Size x, Size y) { return x < y ? x : y; }
__device__ __forceinline__ Size parts(Size whole, Size part) { return (whole + part - 1) / part; }

__device__ __forceinline__ bool aligned(const void* address, int bytes) {
  return reinterpret_cast<unsigned long long>(address) % bytes == 0;
}

__device__ __forceinline__ Size multiprocessors() {
#if defined(__CUDA_ARCH__)
  unsigned count;
  asm("mov.u32 %0, %%nsmid;" : "=r"(count));
  return count;
#else
  return 2;
#endif
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

/// Which thread of its block this is, counted along the warps, and which block of all.
struct Worker {
  int thread;
  Size block, blocks;
};

struct PlaceOfTile {
  Size down, across;
};

/// Of a tile, by its turn.
__device__ __forceinline__ PlaceOfTile place_of_tile(Size tile, Size down, Size across) {
  const Size above = tile / (band * across) * band, height = least(band, down - above);
  const Size of_band = tile - above * across;
  return {above + of_band % height, of_band / height};
}

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
      if constexpr (sizeof(T) == 16)            // past the first-level cache, too
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
      else
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

/// Threads of a block, 2 x 2 warps of 8 x 4, as their sums lie in a tile.
constexpr int threads_down = 16, threads_across = 8;
/// Columns of a and rows of b in one slice: products between two barriers.
constexpr int depth = 8;
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
/// For matrices with too few large tiles to keep every multiprocessor busy.
template <typename T>
using SmallTile = Tile<T, 4, 8>;

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

/// What a thread multiplies at once: elements of a column of a, and of a row of b.
template <typename Tile>
struct Factors {
  using T = typename Tile::T;
  T column[Tile::down], row[Tile::across];

  __device__ __forceinline__ void read_from(const T* slice, Place<Tile> at, int p) {
    read<Tile::down, Place<Tile>::stride_down>(slice + p * Tile::column_of_a + at.row, column);
    read<Tile::across, Place<Tile>::stride_across>(slice + Tile::slice_of_a + p * Tile::columns + at.column, row);
  }

  /// Adds all of their products to a thread's sums.
  __device__ __forceinline__ void multiply(T (&sum)[Tile::down][Tile::across]) const {
#pragma unroll
    for (int s = 0; s < Tile::across; ++s) {
#pragma unroll
      for (int t = 0; t < Tile::down; ++t) {
        const int r = s % 2 == 0 ? t : Tile::down - 1 - t;  // to and fro: neighbours share an operand, read once
        sum[r][s] += column[r] * row[s];
      }
    }
  }
};

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

/// Computes the tile of c that begins at row i and column j.
template <typename Tile, int width, typename T>
__device__ __forceinline__ void multiply_tile(int thread, T* shared, const T* a, const T* b, T* c, Size i, Size j,
                                              Size m, Size n, Size k) {
  Copier<Tile, width, T> copier(thread, a, b, i, j, m, n, k);
  Copies& copies = copier.copies;
  const Place<Tile> place(thread);
  alignas(16) T sum[Tile::down][Tile::across] = {};
  for (int s = 0; s < slices - 1; ++s) copier.start(shared + s * Tile::slice, s * depth);
  copies.wait<slices - 2>();
  __syncthreads();  // all have copied the first slice
  Factors<Tile> factors[2];
  factors[0].read_from(shared, place, 0);
  int arrived = 0, free = slices - 1;
  for (Size p = 0; p < k; p += depth) {
    copier.start(shared + free * Tile::slice, p + (slices - 1) * depth);
#pragma unroll
    for (int q = 0; q < depth; ++q) {
      if (q == depth - 1) {  // the last factors of this slice have been read
        free = arrived;
        arrived = arrived + 1 < slices ? arrived + 1 : 0;
        copies.wait<slices - 2>();
        __syncthreads();  // all have copied the next slice, and none still reads this one
      }
      factors[(q + 1) % 2].read_from(shared + arrived * Tile::slice, place, (q + 1) % depth);
      factors[q % 2].multiply(sum);
    }
  }
  copies.wait<0>();
  __syncthreads();  // the next tile begins where this one ends
  write<Tile, width>(sum, place, c, i, j, m, n);
}

/// Computes every tile of c whose turn it is.
template <typename Tile, int width, typename T>
__device__ __forceinline__ void multiply(Worker worker, T* shared, const T* a, const T* b, T* c, Size m, Size n,
                                         Size k) {
  const Size down = parts(m, Tile::rows), across = parts(n, Tile::columns);
  for (Size tile = worker.block; tile < down * across; tile += worker.blocks) {
    const PlaceOfTile place = place_of_tile(tile, down, across);
    const Size i = place.down * Tile::rows, j = place.across * Tile::columns;
    multiply_tile<Tile, width>(worker.thread, shared, a, b, c, i, j, m, n, k);
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads, 2)
    matmul(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  const int thread = threads_of_warp * threadIdx.y + threadIdx.x;
  const Worker worker = {thread, (long long)blockIdx.y * gridDim.x + blockIdx.x, (long long)gridDim.x * gridDim.y};
  using Large = LargeTile<T>;
  using Small = SmallTile<T>;
  constexpr int width = Vector<T>::size;
  static_assert(Large::slice >= Small::slice, "");
  __shared__ Vector<T> memory[slices * Large::slice / width];
  T* const shared = reinterpret_cast<T*>(memory);
  const bool large = parts(m, Large::rows) * parts(n, Large::columns) >= multiprocessors();
  const bool vectors = n % width == 0 && aligned(b, sizeof(Neighbours<T, width>)) && aligned(c, 16);
  if (large && vectors) return multiply<Large, width>(worker, shared, a, b, c, m, n, k);
  if (large) return multiply<Large, 1>(worker, shared, a, b, c, m, n, k);
  if (vectors) return multiply<Small, width>(worker, shared, a, b, c, m, n, k);
  multiply<Small, 1>(worker, shared, a, b, c, m, n, k);
}
