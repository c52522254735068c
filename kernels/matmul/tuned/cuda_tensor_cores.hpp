// matmul in float16, bfloat16, int8 and float64 by tensor cores: the part of cuda.cu for GPUs that have them, from
// compute capability 8.0 on. Only cuda.cu includes this, once, after the files with the instructions.
//
// Idea: one instruction of a warp multiplies a matrix of 16 x 16 elements by one of 16 x 8 (int8: 16 x 32 by 32 x 8;
//   float64: 16 x 8 by 8 x 8). A warp has a quarter of its block's tile of c as fragments in registers. (CUTLASS,
//   Efficient GEMM in CUDA.)
//   On Hopper, one instruction of a warpgroup multiplies 64 x 16 elements by 16 x 128 (int8: 64 x 32 by 32 x 64).
// Memory: elements are copied to shared memory unchanged. A chunk of 16 bytes is what one instruction copies, and what
//   holds a row of a small matrix. Chunks are permuted within lines of at most 128 bytes. So the 8 rows of such a matrix
//   lie in different banks, and so do 8 neighbours of a row. Hopper's slices take twice as much shared memory.
//   For int8: the hardware transposes only elements of 16 bits, here pairs of columns of b. Their bytes are sorted in
//   registers, into even columns and odd ones.
// Edges: zeros stand for what is beyond the ends of a and b. Beyond the depth they do on both sides, since zero times
//   infinity would be no zero. Where rows or arrays are not aligned to 16 bytes, chunks are copied in pieces of 4
//   bytes. Those not even aligned to 4 are copied element by element, for which the threads wait.

namespace {
namespace tensor_cores {

/// Whether there are tensor cores for elements of T: for narrow ones, and for float64 where they have twice the rate of
/// other units, on A100 and H100. (On B200 both have the same.) The emulation has them, unless it is told to do without;
/// for float64 only where it is told to have warps.
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(WITHOUT_TENSOR_CORES)
template <typename T>
constexpr bool serve = false;
#elif (defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900) || \
    (!defined(__CUDA_ARCH__) && !defined(WARPS))
template <typename T>
constexpr bool serve = sizeof(T) < 4;
#else
template <typename T>
constexpr bool serve = sizeof(T) != 4;
#endif

/// Whether warpgroups multiply elements of T.
#if defined(WARPGROUPS)
template <typename T>
constexpr bool by_warpgroups = sizeof(T) < 4;
#else
template <typename T>
constexpr bool by_warpgroups = false;
#endif

// On a GPU, loops are unrolled and functions inlined: sums and fragments lie in registers, which have no addresses. In
// the emulation they lie in memory, and its compiler would take minutes for this.
#if defined(__CUDA_ARCH__)
#define INLINED_ON_GPU __forceinline__
#else
#define INLINED_ON_GPU __attribute__((noinline))
#endif

/// How often to unroll a loop of so many passes. With a higher limit, NVRTC 13.5 did not end for sm_100 and sm_120.
constexpr int unrolled(int passes) {
#if defined(__CUDA_ARCH__)
  return passes;
#else
  return passes > 0;
#endif
}

template <typename T>
using Chunk = Vector<T>;

/// A slice of a or b in shared memory, in rows of so many chunks. What is longer than a line is cut into columns of
/// lines, one after the other.
template <typename Element, int rows_, int chunks_, bool transposed>
struct Part {
  using T = Element;
  static constexpr int rows = rows_, chunks = chunks_, size = rows * chunks;
  static constexpr int of_line = chunks < 8 ? chunks : 8;  // 128 bytes are all banks

  /// Where a chunk lies. The 8 rows that one matrix is loaded from are permuted differently, modulo 8. In float64, warps
  /// read 4 neighbours of each row at once, so that pairs of chunks are permuted.
  static __device__ __forceinline__ int place(int row, int chunk) {
    constexpr int together = sizeof(T) == 8 ? 2 : 1;
    const int turn = transposed && sizeof(T) == 1 ? row / 4 * 2 + row % 2 : row;
    const int line = chunk / of_line * rows + row;
    const int permuted = (turn / (8 / of_line) & (of_line / together - 1)) * together;
    return line * of_line + (chunk % of_line ^ permuted);
  }
};

/// The part of c that a block computes at once, from so many slices in shared memory.
template <typename Element, int rows_, int columns_, int slices_>
struct Tile {
  using T = Element;
  static constexpr int rows = rows_, columns = columns_, slices = slices_;
  /// How deep the product of one instruction is, and how many of them lie between two barriers.
  static constexpr int depth_of_step = sizeof(T) == 8 ? 8 : 32 / sizeof(T), steps = by_warpgroups<T> ? 4 : 2;
  static constexpr int depth = steps * depth_of_step;
  using PartOfA = Part<T, rows, depth / Chunk<T>::size, false>;
  using PartOfB = Part<T, depth, columns / Chunk<T>::size, true>;
  static constexpr int slice = PartOfA::size + PartOfB::size, size = slices * slice;
};

/// Half of a thread's registers hold sums, as without tensor cores.
template <typename T>
using LargeTile = Tile<T, 128, sizeof(T) == 8 ? 64 : 128, 3>;
/// For matrices with too few large tiles to keep every multiprocessor busy.
template <typename T>
using SmallTile = Tile<T, 64, by_warpgroups<T> ? 128 : 64, by_warpgroups<T> ? 4 : 3>;

/// Chunks of shared memory that a block needs. They leave room for a second block on the multiprocessor.
template <typename T>
constexpr int chunks_of_block = LargeTile<T>::size > SmallTile<T>::size ? LargeTile<T>::size : SmallTile<T>::size;

/// What a source may declare of shared memory, in bytes. An emulation may declare as much as it wants.
#if defined(__CUDA_ARCH__)
constexpr int most_declared = 48 * 1024;
#else
constexpr int most_declared = 1 << 30;
#endif

/// What a block is given at its launch, in bytes, since it needs more than may be declared.
template <typename T>
constexpr int given_bytes(int needed) {
  return serve<T> && needed > most_declared ? needed : 0;
}

/// A thread's part of copying slices of a matrix, one after the other.
///
/// whole: whether all rows begin at multiples of 16 bytes. Then each chunk is in the matrix as a whole, or not at all.
template <typename Part, bool whole>
struct Copier {
  using T = typename Part::T;
  static constexpr int least_piece = sizeof(T) < 4 ? 4 : sizeof(T);
  static constexpr int rows_at_once = threads / Part::chunks, copies = Part::rows / rows_at_once;
  static_assert(copies * rows_at_once == Part::rows, "");

  const T* from;
  Size stride, rows_left, columns_left;  // to the next row, and from here to the ends of the matrix
  int row, chunk;                        // in the slice
  int piece;                             // bytes that one instruction copies

  /// Begins at row i and column j of a matrix.
  __device__ __forceinline__ Copier(int thread, const T* matrix, Size i, Size j, Size height, Size width)
      : stride(width), row(thread / Part::chunks), chunk(thread % Part::chunks) {
    i += row, j += chunk * Chunk<T>::size;
    from = matrix + i * width + j;
    rows_left = height - i, columns_left = width - j;
    piece = rows_aligned(matrix, width, 16) ? 16 : rows_aligned(matrix, width, least_piece) ? least_piece : sizeof(T);
  }

  static __device__ __forceinline__ bool rows_aligned(const T* matrix, Size width, int bytes) {
    return aligned(matrix, bytes) && width * sizeof(T) % bytes == 0;
  }

  /// Starts to copy a slice, and moves on by so many rows and columns.
  __device__ __forceinline__ void start(Chunk<T>* slice, Size down, Size across) {
    if (whole && columns_left > 0 && rows_left > (copies - 1) * rows_at_once)
      copy_all(slice, [](Chunk<T>* to, const T* begin, int) {
        start_copy(to, reinterpret_cast<const Chunk<T>*>(begin), true);
      });
    else
      copy_all(slice, [this](Chunk<T>* to, const T* begin, int below) {
        copy(to, begin, below < rows_left ? columns_left : 0);
      });
    from += down * stride + across;
    rows_left -= down, columns_left -= across;
  }

  /// Calls `copy` for each chunk of a slice: where to, from where, and how far below the first one.
  template <typename Copy>
  __device__ __forceinline__ void copy_all(Chunk<T>* slice, const Copy& copy) const {
#pragma unroll unrolled(copies)
    for (int s = 0; s < copies; ++s) {
      const int below = s * rows_at_once;
      copy(slice + Part::place(row + below, chunk), from + below * stride, below);
    }
  }

  /// Starts to copy a chunk, of which the first `there` elements are in the matrix, if any.
  __device__ INLINED_ON_GPU void copy(Chunk<T>* to, const T* begin, Size there) const {
    if (whole || piece == 16) return start_copy(to, reinterpret_cast<const Chunk<T>*>(begin), there > 0);
    if (piece == least_piece) {
      using Piece = Neighbours<T, least_piece / sizeof(T)>;
#pragma unroll unrolled(Chunk<T>::size / Piece::size)
      for (int e = 0; e < Chunk<T>::size; e += Piece::size) {
        start_copy(reinterpret_cast<Piece*>(to->element + e), reinterpret_cast<const Piece*>(begin + e), e < there);
      }
      return;
    }
    Chunk<T> elements{};
#pragma unroll unrolled(Chunk<T>::size)
    for (int e = 0; e < Chunk<T>::size; ++e) {
      if (e < there) elements.element[e] = begin[e];
    }
    *to = elements;
  }
};

/// What fragments of elements of T consist of.
template <typename T>
struct RegisterOf {
  using Type = unsigned;
};
template <>
struct RegisterOf<double> {
  using Type = double;
};
template <typename T>
using Register = typename RegisterOf<T>::Type;

/// An element of a slice of float64. Larger pieces would have to be moved to where their instruction wants them.
template <typename Part>
__device__ __forceinline__ double element(const Chunk<double>* slice, int row, int column) {
  return slice[Part::place(row, column / 2)].element[column % 2];
}

/// The fragment of 16 rows of a, from `row` on.
template <typename Tile, typename T>
__device__ __forceinline__ void load_a(Register<T> (&to)[4], const Chunk<T>* a, int step, int row, int lane) {
  using Part = typename Tile::PartOfA;
  if constexpr (sizeof(T) == 8) {
#pragma unroll unrolled(4)
    for (int e = 0; e < 4; ++e) {
      to[e] = element<Part>(a, row + e % 2 * 8 + lane / 4, step * Tile::depth_of_step + e / 2 * 4 + lane % 4);
    }
  } else {
    load_matrices(to, a + Part::place(row + lane % 16, 2 * step + lane / 16));
  }
}

/// The fragments of 16 columns of b, from `column` on, for the two instructions of a step: of 8 columns each, or for
/// int8 of those that are even, and odd.
template <typename Tile, typename T>
__device__ __forceinline__ void load_b(Register<T> (&to)[2][2], const Chunk<T>* b, int step, int column, int lane) {
  using Part = typename Tile::PartOfB;
  const int chunk = column / Chunk<T>::size;
  if constexpr (sizeof(T) == 8) {
#pragma unroll unrolled(4)
    for (int e = 0; e < 4; ++e) {
      to[e / 2][e % 2] =
          element<Part>(b, step * Tile::depth_of_step + e % 2 * 4 + lane % 4, column + e / 2 * 8 + lane / 4);
    }
  } else {
    unsigned matrix[4];
    if constexpr (sizeof(T) == 2) {
      load_transposed_matrices(matrix, b + Part::place(step * Tile::depth_of_step + lane % 16, chunk + lane / 16));
      to[0][0] = matrix[0], to[0][1] = matrix[1];
      to[1][0] = matrix[2], to[1][1] = matrix[3];
    } else {
      // Thread 4 g + t needs rows 4 t to 4 t + 3 of each half: the first two come from one matrix, the others from the
      // next. Of each row it receives columns 2 g and 2 g + 1.
      const int half = lane / 16, others = lane / 8 % 2, r = lane % 8;
      const int row = step * Tile::depth_of_step + 16 * half + r / 2 * 4 + others * 2 + r % 2;
      load_transposed_matrices(matrix, b + Part::place(row, chunk));
      to[0][0] = __byte_perm(matrix[0], matrix[1], 0x6420), to[0][1] = __byte_perm(matrix[2], matrix[3], 0x6420);
      to[1][0] = __byte_perm(matrix[0], matrix[1], 0x7531), to[1][1] = __byte_perm(matrix[2], matrix[3], 0x7531);
    }
  }
}

/// Writes neighbours to row `row` of c from column `column` on, as far as these exist.
template <bool whole, typename S, int count>
__device__ __forceinline__ void write_neighbours(const Neighbours<S, count>& sums, S* c, Size row, Size column,
                                                 Size n) {
  S* const to = c + row * n + column;
  if constexpr (whole) {
    if (column < n) *reinterpret_cast<Neighbours<S, count>*>(to) = sums;
  } else {
#pragma unroll unrolled(count)
    for (int e = 0; e < count; ++e) {
      if (column + e < n) to[e] = sums.element[e];
    }
  }
}

/// A thread's share of a tile, of which each warp has a quarter: `down` x `across` fragments of 16 x 16.
template <typename Tile>
struct WarpShare {
  using T = typename Tile::T;
  using S = Sum<T>;
  static constexpr int down = Tile::rows / 32, across = Tile::columns / 32;

  /// Of each fragment the sums of the first instruction, and of the second.
  using Sums = S[down][across][2][4];

  int row, column, lane;  // where the warp's part begins, and which thread of the warp this is

  __device__ __forceinline__ explicit WarpShare(int thread)
      : row(thread / threads_of_warp / 2 * (Tile::rows / 2)),
        column(thread / threads_of_warp % 2 * (Tile::columns / 2)),
        lane(thread % threads_of_warp) {}

  /// Adds the product of a slice of a and a slice of b, after `meanwhile`.
  template <typename Work>
  __device__ __forceinline__ void add_product(Sums& sum, const Chunk<T>* slice, const Work& meanwhile) const {
    meanwhile();
#pragma unroll unrolled(Tile::steps)
    for (int step = 0; step < Tile::steps; ++step) {
      Register<T> a[down][4];
#pragma unroll unrolled(down)
      for (int r = 0; r < down; ++r) load_a<Tile>(a[r], slice, step, row + 16 * r, lane);
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        Register<T> b[2][2];
        load_b<Tile>(b, slice + Tile::PartOfA::size, step, column + 16 * s, lane);
#pragma unroll unrolled(down)
        for (int r = 0; r < down; ++r) {
          multiply_add(T{}, sum[r][s][0], a[r], b[0]);
          multiply_add(T{}, sum[r][s][1], a[r], b[1]);
        }
      }
    }
  }

  /// Writes the sums to the tile of c that begins at row i and column j.
  template <bool whole>
  __device__ __forceinline__ void write(const Sums& sum, S* c, Size i, Size j, Size m, Size n) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll unrolled(2 * down)
    for (int r = 0; r < 2 * down; ++r) {
      const Size row_of_c = i + row + 8 * r + g;
      if (row_of_c >= m) return;
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        const S(&first)[4] = sum[r / 2][s][0], (&second)[4] = sum[r / 2][s][1];
        const int e = r % 2 * 2;
        const Size from = j + column + 16 * s;
        if constexpr (sizeof(T) == 1) {
          write_neighbours<whole>(Neighbours<S, 4>{first[e], second[e], first[e + 1], second[e + 1]}, c, row_of_c,
                                  from + 4 * t, n);
        } else {
          write_neighbours<whole>(Neighbours<S, 2>{first[e], first[e + 1]}, c, row_of_c, from + 2 * t, n);
          write_neighbours<whole>(Neighbours<S, 2>{second[e], second[e + 1]}, c, row_of_c, from + 8 + 2 * t, n);
        }
      }
    }
  }
};

#if defined(WARPGROUPS)
/// Keeps sums on their side of products: see LateProducts.
template <typename Products, typename S, int pieces, int count>
__device__ __forceinline__ void hold_all(const Products& products, S (&sums)[pieces][count]) {
#pragma unroll unrolled(pieces)
  for (int each = 0; each < pieces; ++each) products.hold(sums[each]);
}

/// A thread's share of a tile that a warpgroup computes, which is the block: `down` times 64 rows.
///
/// The instruction takes slices of a and b from shared memory as they lie there: of elements of 16 bits, the depth may
/// run along the rows or down the columns.
template <typename Tile>
struct WarpgroupShare {
  using T = typename Tile::T;
  using S = Sum<T>;
  static constexpr int down = Tile::rows / 64;
  static_assert(Tile::columns == 128 && Tile::PartOfA::chunks == 8, "what one instruction takes");

  /// Of 64 rows of c the warp has 16, and each thread two of these, 8 apart, with 2 neighbours of each 8 columns.
  using Sums = S[down][64];

  int row, lane;  // where the warp's part of 64 rows begins, and which thread of the warp this is
  LateProducts<T> products;

  __device__ __forceinline__ explicit WarpgroupShare(int thread)
      : row(thread / threads_of_warp * 16), lane(thread % threads_of_warp) {}

  /// Adds the product of a slice of a and a slice of b, and does `meanwhile`.
  template <typename Work>
  __device__ __forceinline__ void add_product(Sums& sum, const Chunk<T>* slice, const Work& meanwhile) {
    const Chunk<T>* const b = slice + Tile::PartOfA::size;
    hold_all(products, sum);
    products.begin();
#pragma unroll unrolled(Tile::steps)
    for (int step = 0; step < Tile::steps; ++step) {
#pragma unroll unrolled(down)
      for (int r = 0; r < down; ++r) {
        products.start(sum[r], slice + 64 * r * Tile::PartOfA::chunks, 2 * step, b + step * Tile::depth_of_step * 8);
      }
    }
    products.commit();
    meanwhile();
    products.wait();
    hold_all(products, sum);
  }

  /// Writes the sums to the tile of c that begins at row i and column j.
  template <bool whole>
  __device__ __forceinline__ void write(const Sums& sum, S* c, Size i, Size j, Size m, Size n) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll unrolled(2 * down)
    for (int r = 0; r < 2 * down; ++r) {
      const Size row_of_c = i + r / 2 * 64 + row + r % 2 * 8 + g;
      if (row_of_c >= m) continue;
#pragma unroll unrolled(16)
      for (int s = 0; s < 16; ++s) {
        const int e = 4 * s + r % 2 * 2;
        write_neighbours<whole>(Neighbours<S, 2>{sum[r / 2][e], sum[r / 2][e + 1]}, c, row_of_c, j + 8 * s + 2 * t, n);
      }
    }
  }
};

/// The same for int8: `down` x `across` times 64 x 64.
///
/// Its sums are those of c transposed, b^T a^T. The instruction wants the depth to run along the rows of what stays in
/// shared memory. Those of a do, and lie there as it wants them. The columns of b go through registers.
template <typename Tile>
struct WarpgroupShareOfBytes {
  using T = typename Tile::T;
  using S = Sum<T>;
  static constexpr int down = Tile::rows / 64, across = Tile::columns / 64;

  /// Of 64 columns of c the warp has 16, and each thread two neighbours of these, for 8 times 2 rows.
  using Sums = S[down][across][32];

  int column, lane;  // where the warp's part of 64 columns begins, and which thread of the warp this is
  LateProducts<T> products;

  __device__ __forceinline__ explicit WarpgroupShareOfBytes(int thread)
      : column(thread / threads_of_warp * 16), lane(thread % threads_of_warp) {}

  /// Adds the product of a slice of a and a slice of b, and does `meanwhile`.
  template <typename Work>
  __device__ __forceinline__ void add_product(Sums& sum, const Chunk<T>* slice, const Work& meanwhile) {
    using Part = typename Tile::PartOfA;
    unsigned b[Tile::steps][across][4];
#pragma unroll unrolled(Tile::steps)
    for (int step = 0; step < Tile::steps; ++step) {
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        unsigned half[2][2];
        load_b<Tile>(half, slice + Part::size, step, column + 64 * s, lane);
        b[step][s][0] = half[0][0], b[step][s][1] = half[1][0];
        b[step][s][2] = half[0][1], b[step][s][3] = half[1][1];
        products.hold(b[step][s]);
      }
    }
#pragma unroll unrolled(down)
    for (int r = 0; r < down; ++r) hold_all(products, sum[r]);
    products.begin();
#pragma unroll unrolled(Tile::steps)
    for (int step = 0; step < Tile::steps; ++step) {
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
#pragma unroll unrolled(down)
        for (int r = 0; r < down; ++r) {
          products.start(sum[r][s], b[step][s], slice + 64 * r * Part::chunks, 2 * step);
        }
      }
    }
    products.commit();
    meanwhile();
    products.wait();
#pragma unroll unrolled(down)
    for (int r = 0; r < down; ++r) hold_all(products, sum[r]);
  }

  /// Writes the sums to the tile of c that begins at row i and column j.
  template <bool whole>
  __device__ __forceinline__ void write(const Sums& sum, S* c, Size i, Size j, Size m, Size n) const {
    const int g = lane / 4, t = lane % 4;
#pragma unroll unrolled(down * 16)
    for (int r = 0; r < down * 16; ++r) {
      const Size row_of_c = i + r / 2 * 8 + 2 * t + r % 2;
      if (row_of_c >= m) continue;
#pragma unroll unrolled(across)
      for (int s = 0; s < across; ++s) {
        const int e = r % 16 / 2 * 4 + r % 2;
        const Neighbours<S, 2> sums = {sum[r / 16][s][e], sum[r / 16][s][e + 2]};
        write_neighbours<whole>(sums, c, row_of_c, j + 64 * s + column + 2 * g, n);
      }
    }
  }
};

#endif

/// Who computes a tile.
template <typename Tile, typename T>
struct ShareOf {
  using Type = WarpShare<Tile>;
};
#if defined(WARPGROUPS)
template <typename Tile>
struct ShareOf<Tile, Float16> {
  using Type = WarpgroupShare<Tile>;
};
template <typename Tile>
struct ShareOf<Tile, BFloat16> {
  using Type = WarpgroupShare<Tile>;
};
template <typename Tile>
struct ShareOf<Tile, std::int8_t> {
  using Type = WarpgroupShareOfBytes<Tile>;
};
#endif
template <typename Tile>
using Share = typename ShareOf<Tile, typename Tile::T>::Type;

/// Computes the tile of c that begins at row i and column j.
template <typename Tile, bool whole, typename T>
__device__ __forceinline__ void multiply_tile(int thread, Chunk<T>* shared, const T* a, const T* b, Sum<T>* c, Size i,
                                              Size j, Size m, Size n, Size k) {
  Copier<typename Tile::PartOfA, whole> copier_of_a(thread, a, i, 0, m, k);
  Copier<typename Tile::PartOfB, whole> copier_of_b(thread, b, 0, j, k, n);
  Share<Tile> share(thread);
  typename Share<Tile>::Sums sum = {};
  const auto start = [&](Chunk<T>* slice) {
    copier_of_a.start(slice, 0, Tile::depth);
    copier_of_b.start(slice + Tile::PartOfA::size, Tile::depth, 0);
    end_group_of_copies();
  };
  constexpr int slices = Tile::slices;
  for (int s = 0; s < slices - 1; ++s) start(shared + s * Tile::slice);
  int arrived = 0, free = slices - 1;
  for (Size p = 0; p < k; p += Tile::depth) {
    wait_for_copies<slices - 2>();
    show_copies_to_tensor_cores();
    __syncthreads();  // all have copied the slice that arrived, and none still reads the one before
    share.add_product(sum, shared + arrived * Tile::slice, [&] { start(shared + free * Tile::slice); });
    free = arrived;
    arrived = arrived + 1 < slices ? arrived + 1 : 0;
  }
  wait_for_copies<0>();
  __syncthreads();  // the next tile begins where this one ends
  share.template write<whole>(sum, c, i, j, m, n);
}

/// Computes every tile of c that falls to this block.
template <typename Tile, bool whole, typename T>
__device__ __forceinline__ void multiply(Worker worker, Chunk<T>* shared, const T* a, const T* b, Sum<T>* c, Size m,
                                         Size n, Size k) {
  const Size down = parts(m, Tile::rows), across = parts(n, Tile::columns);
  for (Size tile = worker.block; tile < down * across; tile += worker.blocks) {
    const PlaceOfTile place = place_of_tile(tile, down, across);
    const Size i = place.down * Tile::rows, j = place.across * Tile::columns;
    multiply_tile<Tile, whole>(worker.thread, shared, a, b, c, i, j, m, n, k);
  }
}

/// Computes all of c. Shared memory has room for `chunks_of_block` chunks.
template <typename T>
__device__ __forceinline__ void matmul(Worker worker, Chunk<T>* shared, const T* a, const T* b, Sum<T>* c, Size m,
                                       Size n, Size k) {
  using Large = LargeTile<T>;
  using Small = SmallTile<T>;
  const bool large = parts(m, Large::rows) * parts(n, Large::columns) >= multiprocessors();
  const bool sizes = k % Chunk<T>::size == 0 && n % Chunk<T>::size == 0;
  const bool whole = sizes && aligned(a, 16) && aligned(b, 16) && aligned(c, 16);
  if (large && whole) return multiply<Large, true>(worker, shared, a, b, c, m, n, k);
  if (large) return multiply<Large, false>(worker, shared, a, b, c, m, n, k);
  if (whole) return multiply<Small, true>(worker, shared, a, b, c, m, n, k);
  multiply<Small, false>(worker, shared, a, b, c, m, n, k);
}

}  // namespace tensor_cores
}  // namespace

/// Bytes of shared memory that a block is given at its launch, beyond what is declared.
template <typename T>
__constant__ constexpr int shared_bytes =
    tensor_cores::given_bytes<T>(sizeof(Vector<T>) * tensor_cores::chunks_of_block<T>);
