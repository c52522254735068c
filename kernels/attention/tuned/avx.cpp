// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: both products by tiles whose sums stay in registers, a block of keys at a time (blocks.hpp). Only the scores of
//   a tile and a block are stored. (Dao, Fu, Ermon, Rudra and Re, FlashAttention, NeurIPS 2022.)
// Model: intrinsics (avx_registers.hpp). Lanes are keys in the first product, and columns in the second. Between them
//   exponentials are computed in registers too. Threads take some queries whenever they are free.
// Memory: keys are packed as columns, and values in rows of whole registers, once for all threads. Both are widened to
//   the format of sums. A block of them stays in the second-level cache for all queries of a thread.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. A few queries are taken four or one at a
//   time. If all scores of a query are -infinity, 0 / 0 is NaN.
// ---
// Formats on amx: bfloat16
#include <cstdint>

#include "avx_registers.hpp"
#include "blocks.hpp"
#if defined(__AMX_TILE__)
#include "amx.hpp"
#endif

template <typename T>
static bool attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
#if defined(__AMX_TILE__)
  return attend_by_tiles(q, k, v, c, m, d, n, worth_sharing(m, d, n));
#else
  return attend<T, Registers>(q, k, v, c, m, d, n, worth_sharing(m, d, n));
#endif
}
