// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: both products by tiles whose sums stay in registers, a block of keys at a time (blocks.hpp). Only the scores of
//   a tile and a block are stored. (Dao, Fu, Ermon, Rudra and Re, FlashAttention, NeurIPS 2022.)
// Model: C++ in one thread. The compiler makes vector instructions of loops over keys in the first product, over columns
//   in the second, and of exponentials (loops.hpp).
// Memory: keys are packed as columns, and values in rows of whole registers. Both are widened to the format of sums. A
//   block of them stays in the second-level cache for some queries.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. A few queries are taken four or one at a
//   time. If all scores of a query are -infinity, 0 / 0 is NaN.
#include <cstdint>

#include "blocks.hpp"
#include "loops.hpp"

template <typename T>
static bool attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  return attend<T, Loops>(q, k, v, c, m, d, n, false);
}
