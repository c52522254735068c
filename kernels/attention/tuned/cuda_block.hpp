// A block of cuda.cu: which shares its threads have, and its tiles in shared memory. Only cuda.cu includes this, once,
// after both kinds of shares.

namespace {

/// Blocks that a multiprocessor is to run, as far as their registers allow. Before compute capability 8.0 it has shared
/// memory for one.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <typename T>
constexpr int blocks_at_once = 1;
#else
template <typename T>
constexpr int blocks_at_once = sizeof(Sum<T>) == 8 ? 2 : 3;
#endif

/// The share of a thread with so many columns of values.
template <typename T, int columns, bool by_warps>
struct Chosen {
  using Type = ThreadShare<T, columns>;
};
template <typename T, int columns>
struct Chosen<T, columns, true> {
  using Type = WarpShare<T, columns>;
};
template <typename T, int columns>
using ShareOf = typename Chosen<T, columns, in_warps<T>>::Type;

/// What tiles hold.
template <typename T>
using ElementOf = typename ShareOf<T, 64>::Element;

template <typename Share, typename T>
struct Block {
  using Element = typename Share::Element;
  using TileOfQueries = typename Share::TileOfQueries;
  using TileOfKeys = typename Share::TileOfKeys;
  static constexpr int of_weights = Share::weights_in_tile ? queries * Share::keys / Chunk<Element>::size : 0;
  static constexpr int of_keys = of_weights > TileOfKeys::size ? of_weights : TileOfKeys::size;
  static constexpr int size = TileOfQueries::size + of_keys + TileOfKeys::size;

  Matrix<T> q, k, v;
  Size i;                                            // the first of its queries
  Chunk<Element>*tile_of_q, *tile_of_k, *tile_of_v;  // weights lie in the place of keys

  __device__ __forceinline__ Block(Chunk<Element>* shared, const T* q_, const T* k_, const T* v_, Size i_, Size m,
                                   Size d, Size n)
      : q{q_, m, d, whole(d, q_, k_, v_)},
        k{k_, n, d, q.whole},
        v{v_, n, d, q.whole},
        i(i_),
        tile_of_q(shared),
        tile_of_k(shared + TileOfQueries::size),
        tile_of_v(shared + TileOfQueries::size + of_keys) {}

  /// Whether all rows begin at multiples of what a chunk is copied from.
  static __device__ __forceinline__ bool whole(Size d, const T* q, const T* k, const T* v) {
    constexpr int count = Chunk<Element>::size, bytes = count * sizeof(T);
    return d % count == 0 && aligned(q, bytes) && aligned(k, bytes) && aligned(v, bytes);
  }

  /// Starts to copy the slices at column x, of queries as well where they are not there yet.
  __device__ __forceinline__ void start_slices(Size first, Size x) const {
    if (first == 0 || q.width > Share::slice) q.template start<TileOfQueries>(tile_of_q, i, x);
    k.template start<TileOfKeys>(tile_of_k, first, x);
  }
  __device__ __forceinline__ void start_values(Size first, Size x) const {
    v.template start<TileOfKeys>(tile_of_v, first, x);
  }

  /// Adds the products of weights and all slices of values from column x on, of which the first is there.
  template <int number = 0>
  __device__ __forceinline__ void add_values(Share& share, Size first, Size x) const {
    share.template add_values<number>(tile_of_k, tile_of_v);
    if constexpr ((number + 1) * Share::slice < Share::width) {
      x += Share::slice;
      if (x >= v.width) return;
      __syncthreads();  // nobody reads the slice before any more
      start_values(first, x);
      wait_for_copies<0>();
      __syncthreads();  // the slice is complete
      add_values<number + 1>(share, first, x);
    }
  }
};

/// Chunks of shared memory that a block needs.
template <typename T>
constexpr int chunks_of_block =
    Block<ShareOf<T, 64>, T>::size > Block<ShareOf<T, 128>, T>::size ? Block<ShareOf<T, 64>, T>::size
                                                                     : Block<ShareOf<T, 128>, T>::size;

}  // namespace
