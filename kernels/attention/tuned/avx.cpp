// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: both products by tiles whose sums stay in registers, a block of keys at a time. (Dao, Fu, Ermon, Rudra and Re,
//   FlashAttention, NeurIPS 2022.) No scores but those of a tile and a block are stored.
// Model: intrinsics. Lanes are keys in the first product, and columns in the second. Between them the exponentials are
//   computed in registers too (avx_powers.hpp). Threads take some queries whenever they are free.
// Memory: keys are packed as columns, and values in rows of whole registers, once for all threads. Both are widened to
//   the format of sums. A block of them stays in the second-level cache for all queries of a thread.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. Few queries are taken four or one at a time.
//   If all scores of a query are -infinity, 0 / 0 is NaN.
#include <cstdint>

#include "avx_queries.hpp"

namespace {

/// Operations up to which a second thread costs more than it saves.
constexpr double few_to_share = 1 << 16;

thread_local Workspace of_keys;

}  // namespace

template <typename T>
static bool attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  using S = Sum<T>;
  constexpr Size block = keys_of_block<S>;
  const Size width = parts(d, Simd<S>::lanes) * Simd<S>::lanes, panels = parts(n, panel<S>);
  S* const keys = of_keys.hold<S>(panels * panel<S> * (d + width));
  if (keys == nullptr) return false;
  S* const values = keys + panels * panel<S> * d;
  const bool share = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(d) > few_to_share;
  bool enough_memory = true;
#pragma omp parallel reduction(&& : enough_memory) if (share)
  {
    Queries<T> some(d, width);
    enough_memory = some.there();
#pragma omp for schedule(static)
    for (Size at = 0; at < panels; ++at) {
      const Size j = at * panel<S>, count = least(panel<S>, n - j);
      pack_keys(k + j * d, count, d, keys + j * d);
      pack_values(v + j * d, count, d, width, values + j * width);
    }
#pragma omp for schedule(dynamic)
    for (Size i = 0; i < m; i += most_queries) {
      if (!some.there()) continue;
      some.begin(q + i * d, least(most_queries, m - i));
      for (Size j = 0; j < n; j += block) some.meet(keys + j * d, values + j * width, least(block, n - j));
      some.put(c + i * d);
    }
  }
  return enough_memory;
}
