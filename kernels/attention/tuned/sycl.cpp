// attention: c = softmax(q k^T / sqrt(d)) v, for m queries and n keys. q and c are m x d, k and v n x d, all by rows.
// Idea: on a CPU, both products by tiles whose sums stay in vector registers, a block of keys at a time. On a GPU, a group
//   shares tiles of keys and values. (Dao, Fu, Ermon, Rudra and Re, FlashAttention, NeurIPS 2022.)
// Model: on a CPU, lanes of a vector are keys in the first product, and columns in the second. A work item has 12
//   queries. On a GPU, it has one.
// Memory: on a CPU, an earlier kernel packs keys as columns, and values in rows of whole vectors, both widened to Sum. An
//   item has its scaled queries and its sums beside them. On a GPU, a group brings a tile to local memory, and adds to c
//   for 16 keys at a time.
// Edges: keys beyond the last have scores of -infinity, which weigh nothing. Queries beyond the last are zeros, and are
//   not written. Rows of at most 8 numbers would be filled up to many times as many. So they are taken as they are, one
//   key after the other. If all scores of a query are -infinity, 0 / 0 is NaN.
// ---
// Work items of pack on a CPU: ceil(n / 32), in groups of 1
// Work items of attend_tiles on a CPU: ceil(m / 12), in groups of 1
// Work items on a GPU: m, in groups of 64
// Scratch on a CPU: ceil(n / 32) * 32 * d + n * ceil(d / 32) * 32 + ceil(m / 12) * 12 * ceil(d / 32) * 32 + ceil(m /
//   12) * 12 * d elements of Sum, or 1 where d <= 8
#include <sycl/sycl.hpp>

#include "powers.hpp"

namespace syclexp = sycl::ext::oneapi::experimental;
using sycl::ext::oneapi::this_work_item::get_nd_item;
using Size = std::int64_t;

constexpr float infinity = __builtin_huge_valf();

/// The tile of sums that stays in registers: 24 where there are 32 registers, which are those of 64 bytes, else 12.
template <typename S>
struct Tile {
  static constexpr Size lanes = LANES, rows = 12, registers = lanes * sizeof(S) >= 64 ? 2 : 1;
  static constexpr Size panel = registers * lanes;
  /// Keys whose scores an item has at a time, and their vectors.
  static constexpr Size block = 8 * lanes, vectors = 8;
};

/// Numbers of a row up to which nothing is packed.
constexpr Size narrow_row = 8;

template <typename S>
using Vector = S __attribute__((ext_vector_type(LANES)));

inline Size round_up(Size x, Size unit) { return (x + unit - 1) / unit * unit; }

/// Where values, sums and queries begin in the scratch memory, behind the keys.
template <typename S>
struct Parts {
  S *keys, *values, *sums, *queries;

  Parts(S* scratch, Size m, Size d, Size n)
      : keys(scratch),
        values(keys + round_up(n, 32) * d),
        sums(values + n * round_up(d, 32)),
        queries(sums + round_up(m, Tile<S>::rows) * round_up(d, 32)) {}
};

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1>))
void pack(const T* q, const T* k, const T* v, Sum<T>* c, Sum<T>* scratch, std::int64_t m, std::int64_t d,
          std::int64_t n) {
  using S = Sum<T>;
  constexpr Size panel = Tile<S>::panel;
  const Parts<S> to(scratch, m, d, n);
  const Size first = get_nd_item<1>().get_global_id(0) * 32, end = sycl::min(n, first + 32);
  const Size width = round_up(d, Tile<S>::lanes);
  if (d <= narrow_row) return;
  for (Size j0 = first; j0 < end; j0 += panel) {
    for (Size x = 0; x < d; ++x) {
      for (Size j = 0; j < panel; ++j) to.keys[j0 * d + x * panel + j] = j0 + j < n ? widen(k[(j0 + j) * d + x]) : S(0);
    }
  }
  for (Size j = first; j < end; ++j) {
    for (Size x = 0; x < width; ++x) to.values[j * width + x] = x < d ? widen(v[j * d + x]) : S(0);
  }
}

/// The scores of a tile of queries, and of the keys of a panel.
template <typename S>
__attribute__((always_inline)) inline void multiply_keys(const S* queries, Size d, const S* keys, Vector<S>* scores) {
  constexpr Size rows = Tile<S>::rows, registers = Tile<S>::registers;
  Vector<S> sum[rows][registers];
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < registers; ++s) sum[r][s] = S(0);
  }
  for (Size x = 0; x < d; ++x) {
    const auto* const key = reinterpret_cast<const Vector<S>*>(keys + x * Tile<S>::panel);
#pragma unroll
    for (Size r = 0; r < rows; ++r) {
      const Vector<S> query = queries[r * d + x];
#pragma unroll
      for (Size s = 0; s < registers; ++s) sum[r][s] += query * key[s];
    }
  }
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < registers; ++s) scores[r * Tile<S>::vectors + s] = sum[r][s];
  }
}

/// Adds the values of some keys, times their weights, to so many vectors of the sums of a tile.
template <Size vectors, typename S>
__attribute__((always_inline)) inline void add_values(const S* weights, Size keys, const Vector<S>* values, Size apart,
                                                      Vector<S>* sums) {
  constexpr Size rows = Tile<S>::rows;
  Vector<S> sum[rows][vectors];
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < vectors; ++s) sum[r][s] = sums[r * apart + s];
  }
  for (Size j = 0; j < keys; ++j, values += apart) {
#pragma unroll
    for (Size r = 0; r < rows; ++r) {
      const Vector<S> weight = weights[r * Tile<S>::block + j];
#pragma unroll
      for (Size s = 0; s < vectors; ++s) sum[r][s] += weight * values[s];
    }
  }
#pragma unroll
  for (Size r = 0; r < rows; ++r) {
#pragma unroll
    for (Size s = 0; s < vectors; ++s) sums[r * apart + s] = sum[r][s];
  }
}

/// The powers of two of a vector, as powers.hpp has them. Of calls for each lane the compiler makes no vectors.
template <typename S>
__attribute__((always_inline)) inline Vector<S> powers_of_two(Vector<S> x) {
  using P = Powers<S>;
  x = x < P::least ? Vector<S>(P::least) : x;
  const Vector<S> shifted = x + P::large, f = x - (shifted - P::large);
  Vector<S> p = P::polynomial[0];
#pragma unroll
  for (int term = 1; term < P::terms; ++term) p = p * f + P::polynomial[term];
  using Bits = typename P::Bits __attribute__((ext_vector_type(LANES)));
  return reinterpret_cast<Vector<S>>(reinterpret_cast<Bits>(shifted) << P::digits) * (p * f + S(1));
}

/// Turns the scores of a query into weights, and returns the largest one. Where it is larger than all before, what was
/// summed is made smaller.
template <typename S>
S weigh(Vector<S>* scores, S largest, Vector<S>& total, Vector<S>* sums, Size vectors) {
  Vector<S> most = largest;
  for (Size at = 0; at < Tile<S>::vectors; ++at) most = scores[at] > most ? scores[at] : most;
  S larger = largest;
  for (Size lane = 0; lane < LANES; ++lane) larger = most[lane] > larger ? most[lane] : larger;
  const S limit = larger == -infinity ? S(0) : larger;  // so that a score of -infinity weighs nothing
  if (larger > largest) {
    const S kept = power_of_two(largest - limit);
    for (Size x = 0; x < vectors; ++x) sums[x] *= kept;
    total *= kept;
  }
  for (Size at = 0; at < Tile<S>::vectors; ++at) {
    scores[at] = powers_of_two<S>(scores[at] - limit);
    total += scores[at];
  }
  return larger;
}

/// A query of few numbers, one key after the other.
template <typename T>
void attend_narrow(const T* q, const T* k, const T* v, Sum<T>* c, Size d, Size n) {
  using S = Sum<T>;
  const S scale = S(1.4426950408889634) / sycl::sqrt(S(d));
  S largest = -infinity, total = 0, sum[narrow_row] = {};
  for (Size j = 0; j < n; ++j, k += d, v += d) {
    S score = 0;
    for (Size x = 0; x < d; ++x) score += widen(q[x]) * scale * widen(k[x]);
    if (score == -infinity) continue;
    const S larger = score > largest ? score : largest;
    const S kept = power_of_two(largest - larger), weight = power_of_two(score - larger);
    for (Size x = 0; x < d; ++x) sum[x] = sum[x] * kept + weight * widen(v[x]);
    total = total * kept + weight;
    largest = larger;
  }
  for (Size x = 0; x < d; ++x) c[x] = sum[x] / total;
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::work_group_size<1>))
void attend_tiles(const T* q, const T* k, const T* v, Sum<T>* c, Sum<T>* scratch, std::int64_t m, std::int64_t d,
                  std::int64_t n) {
  using S = Sum<T>;
  constexpr Size rows = Tile<S>::rows, block = Tile<S>::block, blocks = Tile<S>::vectors, lanes = Tile<S>::lanes;
  const Parts<S> in(scratch, m, d, n);
  const Size first = get_nd_item<1>().get_global_id(0) * rows, there = sycl::min(rows, m - first);
  const Size vectors = round_up(d, lanes) / lanes;
  for (Size i = first; d <= narrow_row && i < first + there; ++i) attend_narrow(q + i * d, k, v, c + i * d, d, n);
  if (d <= narrow_row || there == 0) return;  // without queries there is no room for their tile
  S* const queries = in.queries + first * d;
  auto* const sums = reinterpret_cast<Vector<S>*>(in.sums + first * round_up(d, 32));
  const S scale = S(1.4426950408889634) / sycl::sqrt(S(d));  // so that scores are exponents of two
  for (Size at = 0; at < rows * d; ++at) queries[at] = at < there * d ? widen(q[first * d + at]) * scale : S(0);
  for (Size at = 0; at < rows * vectors; ++at) sums[at] = S(0);
  Vector<S> scores[rows * blocks], total[rows];
  S* const score = reinterpret_cast<S*>(scores);
  S largest[rows];
  for (Size r = 0; r < rows; ++r) total[r] = S(0), largest[r] = -infinity;
  for (Size j = 0; j < n; j += block) {
    const Size count = sycl::min(block, n - j);
    for (Size at = 0; at < count; at += Tile<S>::panel) {
      multiply_keys(queries, d, in.keys + (j + at) * d, scores + at / lanes);
    }
    for (Size r = 0; r < rows; ++r) {
      for (Size at = count; at < block; ++at) score[r * block + at] = -infinity;
      largest[r] = weigh<S>(scores + r * blocks, largest[r], total[r], sums + r * vectors, vectors);
    }
    const auto* const values = reinterpret_cast<const Vector<S>*>(in.values + j * vectors * lanes);
    Size x = 0;
    for (; x + Tile<S>::registers <= vectors; x += Tile<S>::registers) {
      add_values<Tile<S>::registers>(score, count, values + x, vectors, sums + x);
    }
    if (x < vectors) add_values<1>(score, count, values + x, vectors, sums + x);
  }
  for (Size r = 0; r < there; ++r) {
    S all = 0;
    for (Size lane = 0; lane < lanes; ++lane) all += total[r][lane];
    const S* const row = reinterpret_cast<const S*>(sums + r * vectors);
    for (Size x = 0; x < d; ++x) c[(first + r) * d + x] = row[x] / all;
  }
}

/// Items of a group of a GPU, and a tile of keys or values that they share.
constexpr Size items = 64, keys = 16, width = 32;

/// Brings a part of some rows to local memory.
template <typename T>
void bring(const T* from, Size apart, Size count, Size wide, Sum<T> (&tile)[keys][width]) {
  const auto item = get_nd_item<1>();
  sycl::group_barrier(item.get_group());  // nobody reads the tile any more
  for (Size at = item.get_local_id(0); at < count * width; at += items) {
    if (at % width < wide) tile[at / width][at % width] = widen(from[at / width * apart + at % width]);
  }
  sycl::group_barrier(item.get_group());  // it is complete
}

template <typename T>
SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void attention(const T* q, const T* k, const T* v, Sum<T>* c, std::int64_t m, std::int64_t d, std::int64_t n) {
  using S = Sum<T>;
  static syclexp::work_group_static<S[keys][width]> memory;
  S(&tile)[keys][width] = memory;
  const Size i = get_nd_item<1>().get_global_id(0);
  const S root = sycl::sqrt(S(d));
  S largest = -infinity, sum = 0;
  for (Size j = 0; j < n; j += keys) {
    const Size count = sycl::min(keys, n - j);
    S weight[keys] = {};
    for (Size x = 0; x < d; x += width) {
      const Size wide = sycl::min(width, d - x);
      bring(k + j * d + x, d, count, wide, tile);
      for (Size at = 0; i < m && at < wide; ++at) {
        const S own = widen(q[i * d + x + at]);
#pragma unroll
        for (Size e = 0; e < keys; ++e) weight[e] += own * tile[e][at];
      }
    }
    S larger = largest;
    for (Size e = 0; e < keys; ++e) {
      weight[e] = e < count ? weight[e] / root : -infinity;
      larger = weight[e] > larger ? weight[e] : larger;
    }
    const S limit = larger == -infinity ? S(0) : larger, kept = sycl::exp(largest - limit);
    largest = larger;
    sum *= kept;
    for (Size e = 0; e < keys; ++e) sum += weight[e] = sycl::exp(weight[e] - limit);
    for (Size x = 0; x < d; x += width) {
      const Size wide = sycl::min(width, d - x);
      bring(v + j * d + x, d, count, wide, tile);
      for (Size at = 0; i < m && at < wide; ++at) {
        S total = j == 0 ? S(0) : c[i * d + x + at] * kept;
        for (Size e = 0; e < count; ++e) total += weight[e] * tile[e][at];
        c[i * d + x + at] = total;
      }
    }
  }
  for (Size x = 0; i < m && x < d; ++x) c[i * d + x] /= sum;
}
