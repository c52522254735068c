// Some queries that one thread computes at a time, with all that is known of them so far.
#pragma once

#include "../../exponentials.hpp"
#include "../../roots.hpp"
#include "../../workspace.hpp"
#include "avx_powers.hpp"
#include "avx_tiles.hpp"

namespace {

/// Queries of a thread at a time, for which a block of keys and values is read again from the second-level cache; and
/// keys of a block, whose scores stay in the first-level cache for a tile of queries.
constexpr Size most_queries = 4 * rows_of_tile;
template <typename S>
constexpr Size keys_of_block = 16 * panel<S>;

thread_local Workspace of_queries;

template <typename T>
class Queries {
  using S = Sum<T>;
  using V = Simd<S>;

 public:
  /// Queries of so many numbers, whose values take so many with padding. `there` is false where memory is missing.
  Queries(Size d, Size width) : d_(d), width_(width) {
    queries_ = of_queries.hold<S>(most_queries * (d + width + V::lanes + 1) + rows_of_tile * keys_of_block<S>);
    sums_ = queries_ + most_queries * d;
    totals_ = sums_ + most_queries * width;
    scores_ = totals_ + most_queries * V::lanes;
    largest_ = scores_ + rows_of_tile * keys_of_block<S>;
  }

  bool there() const { return queries_ != nullptr; }

  /// Takes new ones. Their scores become exponents of two.
  void begin(const T* q, Size count) {
    const S scale = S(1.4426950408889634) / root(S(d_));
    count_ = count;
    for (Size at = 0; at < count * d_; ++at) queries_[at] = widen(q[at]) * scale;
    for (Size at = 0; at < count * width_; ++at) sums_[at] = 0;
    for (Size at = 0; at < count * V::lanes; ++at) totals_[at] = 0;
    for (Size r = 0; r < count; ++r) largest_[r] = -infinity;
  }

  /// Meets a block of keys, of which so many exist, and their values.
  void meet(const S* keys, const S* values, Size count) {
    Size r = 0;
    for (; r + rows_of_tile <= count_; r += rows_of_tile) meet_by<rows_of_tile>(r, keys, values, count);
    for (; r + 4 <= count_; r += 4) meet_by<4>(r, keys, values, count);
    for (; r < count_; ++r) meet_by<1>(r, keys, values, count);
  }

  void put(S* c) const {
    for (Size r = 0; r < count_; ++r) {
      S total = 0;
      for (Size lane = 0; lane < V::lanes; ++lane) total += totals_[r * V::lanes + lane];
      for (Size x = 0; x < d_; ++x) c[r * d_ + x] = sums_[r * width_ + x] / total;
    }
  }

 private:
  template <Size rows>
  void meet_by(Size first, const S* keys, const S* values, Size count) {
    constexpr Size apart = keys_of_block<S>;
    const Size whole = parts(count, panel<S>) * panel<S>;
    for (Size j = 0; j < whole; j += panel<S>) {
      multiply_keys<S, rows>(queries_ + first * d_, d_, keys + j * d_, scores_ + j, apart);
    }
    for (Size r = 0; r < rows; ++r) {
      for (Size j = count; j < whole; ++j) scores_[r * apart + j] = -infinity;
      weigh(first + r, scores_ + r * apart, whole);
    }
    S* const sums = sums_ + first * width_;
    Size x = 0;
    for (; x + panel<S> <= width_; x += panel<S>) {
      add_values<S, rows, 2>(scores_, apart, count, values + x, width_, sums + x);
    }
    if (x < width_) add_values<S, rows, 1>(scores_, apart, count, values + x, width_, sums + x);
  }

  /// Turns the scores of a query into weights. Where one is larger than all before, what was summed is made smaller.
  void weigh(Size r, S* scores, Size count) {
    auto largest = V::broadcast(largest_[r]);
    for (Size j = 0; j < count; j += V::lanes) largest = greater(V::load(scores + j), largest);
    const S larger = largest_of<S>(largest);
    // So scores of -infinity weigh nothing, even where there is no other.
    const auto limit = V::broadcast(larger > Powers<S>::lowest ? larger : Powers<S>::lowest);
    auto total = V::load(totals_ + r * V::lanes);
    if (larger > largest_[r]) {
      const auto kept = power_of_two<S>(V::subtract(V::broadcast(largest_[r]), limit));
      for (Size x = 0; x < width_; x += V::lanes) {
        S* const sums = sums_ + r * width_ + x;
        V::store(sums, V::multiply(V::load(sums), kept));
      }
      total = V::multiply(total, kept);
      largest_[r] = larger;
    }
    for (Size j = 0; j < count; j += V::lanes) {
      const auto weights = power_of_two<S>(V::subtract(V::load(scores + j), limit));
      V::store(scores + j, weights);
      total = V::add(total, weights);
    }
    V::store(totals_ + r * V::lanes, total);
  }

  Size d_, width_, count_ = 0;
  S *queries_, *sums_, *totals_, *scores_, *largest_;
};

}  // namespace
