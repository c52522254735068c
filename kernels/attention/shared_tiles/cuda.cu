// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: a block shares tiles of keys and values. A thread has the scores of 16 keys in registers, so that it reads its
//   query, and adds to its row of c, once for 16 keys.
// Model: a thread has one query. Barriers end the use of a tile, and begin that of the next one.
// Work items: m, in groups of 128
// Memory: a block brings 32 columns of 16 keys or values to shared memory, widened to the format of sums. All threads of
//   a warp read the same element of it, which is one access. The largest score so far is taken off, and where a larger
//   one comes, what was summed before is made smaller.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. Threads past the last query bring tiles
//   alone. If all scores of a query are -infinity, 0 / 0 is NaN.
#include "../../formats.hpp"

namespace {

constexpr int threads = 128, keys = 16, width = 32;

template <typename T>
using Tile = Sum<T>[keys][width];

/// Brings a part of some rows to shared memory.
template <typename T>
__device__ void bring(const T* from, long long apart, int count, int wide, Tile<T>& tile) {
  __syncthreads();  // nobody reads the tile any more
  for (int at = threadIdx.x; at < count * width; at += threads) {
    if (at % width < wide) tile[at / width][at % width] = widen(from[at / width * apart + at % width]);
  }
  __syncthreads();  // it is complete
}

}  // namespace

template <typename T>
__global__ void __launch_bounds__(threads)
    attention(const T* q, const T* k, const T* v, Sum<T>* c, long long m, long long d, long long n) {
  __shared__ Tile<T> tile;
  const long long i = (long long)blockIdx.x * threads + threadIdx.x;
  const Sum<T> infinity = __builtin_huge_valf(), root = sqrt(Sum<T>(d));
  Sum<T> largest = -infinity, sum = 0;
  for (long long j = 0; j < n; j += keys) {
    const int count = min((long long)keys, n - j);
    Sum<T> weight[keys] = {};
    for (long long x = 0; x < d; x += width) {
      const int wide = min((long long)width, d - x);
      bring(k + j * d + x, d, count, wide, tile);
      for (int at = 0; i < m && at < wide; ++at) {
        const Sum<T> own = widen(q[i * d + x + at]);
#pragma unroll
        for (int e = 0; e < keys; ++e) weight[e] += own * tile[e][at];
      }
    }
    Sum<T> larger = largest;
#pragma unroll
    for (int e = 0; e < keys; ++e) {
      weight[e] = e < count ? weight[e] / root : -infinity;
      larger = weight[e] > larger ? weight[e] : larger;
    }
    const Sum<T> limit = larger == -infinity ? 0 : larger, kept = exp(largest - limit);
    largest = larger;
    sum *= kept;
#pragma unroll
    for (int e = 0; e < keys; ++e) sum += weight[e] = exp(weight[e] - limit);
    for (long long x = 0; x < d; x += width) {
      const int wide = min((long long)width, d - x);
      bring(v + j * d + x, d, count, wide, tile);
      for (int at = 0; i < m && at < wide; ++at) {
        Sum<T> total = j == 0 ? 0 : c[i * d + x + at] * kept;
#pragma unroll
        for (int e = 0; e < keys; ++e) total += e < count ? weight[e] * tile[e][at] : 0;
        c[i * d + x + at] = total;
      }
    }
  }
  for (long long x = 0; i < m && x < d; ++x) c[i * d + x] /= sum;
}
