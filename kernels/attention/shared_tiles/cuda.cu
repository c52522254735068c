// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: a block has 16 queries and brings 16 keys at a time, and their values, to memory that its threads share. There
//   it reads each of them 16 times, and global memory once. A larger score is met once a tile, not once a key.
// Model: a thread has the score of one query with one key of the tile, and the sums of one query in every 16th column.
// Memory: rows come in slices of 16 elements, and weights are shared as well. A row of c holds the sums.
// Edges: zeros stand for what is beyond the ends, and a weight of 0 for a key beyond the last one. Every thread goes to
//   every barrier. A score of -infinity weighs nothing. If all are, 0 / 0 is NaN.
// ---
// Work items: 16 x m, in groups of 16 x 16
#include "../../formats.hpp"

namespace {

constexpr int side = 16;

}  // namespace

template <typename T>
__global__ void __launch_bounds__(side* side)
    attention(const T* q, const T* k, const T* v, Sum<T>* c, long long m, long long d, long long n) {
  __shared__ Sum<T> own[side][side + 1], tile[side][side + 1], weight[side][side + 1];
  const Sum<T> infinity = __builtin_huge_valf();
  const int row = threadIdx.y, column = threadIdx.x;
  for (long long first = (long long)blockIdx.y * side; first < m; first += (long long)gridDim.y * side) {
    const long long i = first + row;
    Sum<T> largest = -infinity, sum = 0;
    for (long long j = 0; j < n; j += side) {
      Sum<T> score = 0;
      for (long long x = 0; x < d; x += side) {
        const bool inside = x + column < d;
        own[row][column] = inside && i < m ? widen(q[i * d + x + column]) : Sum<T>(0);
        tile[row][column] = inside && j + row < n ? widen(k[(j + row) * d + x + column]) : Sum<T>(0);
        __syncthreads();  // slices are complete
        for (int e = 0; e < side; ++e) score += own[row][e] * tile[column][e];
        __syncthreads();  // nobody reads them any more
      }
      weight[row][column] = j + column < n ? score / sqrt(Sum<T>(d)) : -infinity;
      __syncthreads();  // all scores are there
      Sum<T> larger = largest;
      for (int e = 0; e < side; ++e) larger = weight[row][e] > larger ? weight[row][e] : larger;
      const Sum<T> base = larger == -infinity ? Sum<T>(0) : larger, kept = exp(largest - base);
      const Sum<T> own_weight = exp(weight[row][column] - base);
      __syncthreads();  // nobody reads scores any more
      weight[row][column] = own_weight, sum *= kept, largest = larger;
      __syncthreads();  // all weights are there
      for (int e = 0; e < side; ++e) sum += weight[row][e];
      for (long long x = 0; x < d; x += side) {
        const bool inside = x + column < d;
        tile[row][column] = inside && j + row < n ? widen(v[(j + row) * d + x + column]) : Sum<T>(0);
        __syncthreads();  // the slice is complete
        Sum<T> value = j > 0 && inside && i < m ? c[i * d + x + column] * kept : Sum<T>(0);
        for (int e = 0; e < side; ++e) value += weight[row][e] * tile[e][column];
        if (inside && i < m) c[i * d + x + column] = j + side < n ? value : value / sum;
        __syncthreads();  // nobody reads it any more
      }
    }
  }
}
