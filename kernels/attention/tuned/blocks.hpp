// attention in C++ by blocks of keys, which avx, openmp and cpp share. What computes with registers, the files that
// include this bring as a model: `Registers` by intrinsics, `Loops` by loops of which the compiler makes vectors.
//
// Keys are packed as columns, in panels of two registers, and values in rows of whole registers. Both are widened to the
// format of sums. Everything is in an unnamed namespace, for the reason that simd.hpp gives.
#pragma once

#include "../../exponentials.hpp"
#include "../../formats.hpp"
#include "../../roots.hpp"
#include "../../workspace.hpp"

namespace {

/// The least number of a format.
template <typename S>
constexpr S lowest = -0x1.fffffep127f;
template <>
constexpr double lowest<double> = -0x1.fffffffffffffp1023;

/// Turns the scores of a query into weights. Where one is larger than all before, what was summed is made smaller: so
/// many sums of values, and the totals of weights, one a lane.
template <typename M, typename S>
void weigh(S* scores, Size count, S& largest, S* sums, Size width, S* totals) {
  const S larger = M::largest(scores, count, largest);
  // So scores of -infinity weigh nothing, even where there is no other.
  const S limit = larger > lowest<S> ? larger : lowest<S>;
  if (larger > largest) {
    const S kept = M::power_of_two(largest - limit);
    M::multiply(sums, width, kept);
    M::multiply(totals, M::lanes, kept);
    largest = larger;
  }
  M::exponentiate(scores, count, limit, totals);
}

/// Divides sums of values by the totals of weights: the results of so many queries of width d.
template <typename M, typename S>
void put_means(const S* sums, Size width, const S* totals, Size count, Size d, S* c) {
  for (Size r = 0; r < count; ++r) {
    S total = 0;
    for (Size lane = 0; lane < M::lanes; ++lane) total += totals[r * M::lanes + lane];
    for (Size x = 0; x < d; ++x) c[r * d + x] = sums[r * width + x] / total;
  }
}

thread_local Workspace workspace_of_keys, workspace_of_queries;

/// Some queries that a thread computes at a time, with all that is known of them so far.
template <typename T, template <typename> typename Model>
class Queries {
  using S = Sum<T>;
  using M = Model<S>;

 public:
  /// For these a block of keys and values is read again from the second-level cache.
  static constexpr Size most = 4 * M::rows;
  /// Keys of a block. Their scores stay in the first-level cache for a tile of queries.
  static constexpr Size block = 32 * M::lanes;

  /// Queries of so many numbers, whose values take so many with padding.
  Queries(Size d, Size width) : d_(d), width_(width) {
    queries_ = workspace_of_queries.hold<S>(most * (d + width + M::lanes + 1) + M::rows * block);
    sums_ = queries_ + most * d;
    totals_ = sums_ + most * width;
    scores_ = totals_ + most * M::lanes;
    largest_ = scores_ + M::rows * block;
  }

  /// Whether there is memory for them.
  bool there() const { return queries_ != nullptr; }

  /// Takes new ones. They are scaled, so that their scores are exponents of two.
  void begin(const T* q, Size count) {
    const S scale = S(1.4426950408889634) / root(S(d_));
    count_ = count;
    for (Size at = 0; at < count * d_; ++at) queries_[at] = widen(q[at]) * scale;
    for (Size at = 0; at < count * width_; ++at) sums_[at] = 0;
    for (Size at = 0; at < count * M::lanes; ++at) totals_[at] = 0;
    for (Size r = 0; r < count; ++r) largest_[r] = -infinity;
  }

  /// Meets a block of so many keys, and their values.
  void meet(const S* keys, const S* values, Size count) {
    Size r = 0;
    for (; r + M::rows <= count_; r += M::rows) meet_by<M::rows>(r, keys, values, count);
    for (; r + 4 <= count_; r += 4) meet_by<4>(r, keys, values, count);
    for (; r < count_; ++r) meet_by<1>(r, keys, values, count);
  }

  void put(S* c) const { put_means<M>(sums_, width_, totals_, count_, d_, c); }

 private:
  template <Size rows>
  void meet_by(Size first, const S* keys, const S* values, Size count) {
    constexpr Size panel = 2 * M::lanes;
    const Size whole = parts(count, panel) * panel;
    for (Size j = 0; j < whole; j += panel) {
      M::template multiply_keys<rows>(queries_ + first * d_, d_, keys + j * d_, scores_ + j, block);
    }
    for (Size r = 0; r < rows; ++r) {
      for (Size j = count; j < whole; ++j) scores_[r * block + j] = -infinity;
      weigh<M>(scores_ + r * block, whole, largest_[first + r], sums_ + (first + r) * width_, width_,
               totals_ + (first + r) * M::lanes);
    }
    S* const sums = sums_ + first * width_;
    Size x = 0;
    for (; x + panel <= width_; x += panel) {
      M::template add_values<rows, 2>(scores_, block, count, values + x, width_, sums + x);
    }
    if (x < width_) M::template add_values<rows, 1>(scores_, block, count, values + x, width_, sums + x);
  }

  Size d_, width_, count_ = 0;
  S *queries_, *sums_, *totals_, *scores_, *largest_;
};

/// A panel of keys as columns: element x of key j is at [x][j]. Keys beyond the last are zeros.
template <typename T, typename S>
void pack_keys(const T* k, Size keys, Size d, Size panel, S* to) {
  for (Size x = 0; x < d; ++x) {
    for (Size j = 0; j < panel; ++j) to[x * panel + j] = j < keys ? widen(k[j * d + x]) : S(0);
  }
}

/// Values in rows of whole registers.
template <typename T, typename S>
void pack_values(const T* v, Size keys, Size d, Size width, S* to) {
  for (Size j = 0; j < keys; ++j) {
    for (Size x = 0; x < width; ++x) to[j * width + x] = x < d ? widen(v[j * d + x]) : S(0);
  }
}

/// False where there is no memory.
template <typename T, template <typename> typename Model>
bool attend(const T* q, const T* k, const T* v, Sum<T>* c, Size m, Size d, Size n, [[maybe_unused]] bool share) {
  using S = Sum<T>;
  using Some = Queries<T, Model>;
  constexpr Size lanes = Model<S>::lanes, panel = 2 * lanes;
  const Size width = parts(d, lanes) * lanes, panels = parts(n, panel);
  S* const keys = workspace_of_keys.hold<S>(panels * panel * (d + width));
  if (keys == nullptr) return false;
  S* const values = keys + panels * panel * d;
  bool enough_memory = true;
#pragma omp parallel reduction(&& : enough_memory) if (share)
  {
    Some some(d, width);
    enough_memory = some.there();
#pragma omp for schedule(static)
    for (Size at = 0; at < panels; ++at) {
      const Size j = at * panel, count = least(panel, n - j);
      pack_keys(k + j * d, count, d, panel, keys + j * d);
      pack_values(v + j * d, count, d, width, values + j * width);
    }
#pragma omp for schedule(dynamic)
    for (Size i = 0; i < m; i += Some::most) {
      if (!some.there()) continue;
      some.begin(q + i * d, least(Some::most, m - i));
      for (Size j = 0; j < n; j += Some::block) {
        some.meet(keys + j * d, values + j * width, least(Some::block, n - j));
      }
      some.put(c + i * d);
    }
  }
  return enough_memory;
}

/// Whether there is so much work that a second thread gains more than it costs.
inline bool worth_sharing(Size m, Size d, Size n) {
  constexpr double few = 1 << 16;
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(d) > few;
}

}  // namespace
