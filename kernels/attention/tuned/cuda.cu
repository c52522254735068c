// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: a block has 64 queries, and reads a tile of keys and their values once for all of them. Scores and sums stay in
//   its threads' registers. (Dao and others, FlashAttention, 2022.)
// Model: a thread has a share of scores and sums: of 4 queries (cuda_thread_share.hpp) or, in 16-bit formats where a
//   GPU has tensor cores for them, of its warp's 16 (cuda_warp_share.hpp).
// Memory: tiles are copied to shared memory, values while scores are computed.
// Edges: zeros stand for what is beyond the ends. Keys beyond the last one have the score -infinity. Rows longer than
//   128 are read in slices and computed in parts, with the scores anew for each part. A score of -infinity weighs
//   nothing. If all are, 0 / 0 is NaN.
// ---
// Work items: 2 * m, in groups of 128
#include "../../formats.hpp"

#include "../../matmul/tuned/cuda_blocks.hpp"
#include "../../matmul/tuned/cuda_warp_matrices.hpp"

#include "cuda_tiles.hpp"

#include "cuda_thread_share.hpp"
#include "cuda_warp_share.hpp"

#include "cuda_block.hpp"

namespace {

/// Computes the results of a block's queries.
template <typename Share, typename T>
__device__ __forceinline__ void attend(const Block<Share, T>& block, Sum<T>* c, Size m, Size d, Size n) {
  const Sum<T> scale = Sum<T>(1.4426950408889634) / sqrt(Sum<T>(d));  // of powers of 2 in place of e
  for (Size column = 0; column < d; column += Share::width) {
    Share share(threadIdx.x);
    block.start_slices(0, 0);
    for (Size first = 0; first < n; first += Share::keys) {
      share.begin_scores();
      for (Size x = 0; x < d; x += Share::slice) {
        if (x > 0) {
          __syncthreads();  // nobody reads the slices before any more
          block.start_slices(first, x);
        }
        wait_for_copies<0>();
        __syncthreads();  // slices are complete, and nobody reads values of the tile before any more
        if (x + Share::slice >= d) block.start_values(first, column);
        share.add_scores(block.tile_of_q, block.tile_of_k);
      }
      if (Share::weights_in_tile) __syncthreads();  // nobody reads keys any more, where weights come
      share.weigh(block.tile_of_k, least(n - first, Share::keys), scale);
      wait_for_copies<0>();
      __syncthreads();  // values and weights are complete, and nobody reads keys any more
      const Size next = first + Share::keys;
      if (next < n && !Share::weights_in_tile) block.start_slices(next, 0);
      block.add_values(share, first, column);
      if (Share::weights_in_tile) __syncthreads();  // nobody reads weights any more, where keys come
      if (next < n && Share::weights_in_tile) block.start_slices(next, 0);
    }
    share.write(c, block.i, column, m, d);
  }
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads, blocks_at_once<T>)
    attention(const T* q, const T* k, const T* v, Sum<T>* c, long long m, long long d, long long n) {
  __shared__ Chunk<ElementOf<T>> shared[chunks_of_block<T>];
  const Size i = (long long)blockIdx.x * queries;
  if (i >= m) return;
  if (d <= 64) return attend(Block<ShareOf<T, 64>, T>(shared, q, k, v, i, m, d, n), c, m, d, n);
  attend(Block<ShareOf<T, 128>, T>(shared, q, k, v, i, m, d, n), c, m, d, n);
}
