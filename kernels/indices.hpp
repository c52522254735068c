// The numbers of a loop, as iterators: what algorithms of C++17 run over where a kernel needs its index, and not one
// element alone. From C++20 on, std::views::iota has such iterators.
#pragma once

#include <cstdint>
#include <iterator>

namespace {

class Index {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::int64_t;
  using difference_type = std::int64_t;
  using pointer = const std::int64_t*;
  using reference = std::int64_t;

  explicit Index(std::int64_t at) : at_(at) {}
  std::int64_t operator*() const { return at_; }
  std::int64_t operator[](std::int64_t n) const { return at_ + n; }
  Index& operator++() { return *this += 1; }
  Index operator++(int) { return Index(at_++); }
  Index& operator--() { return *this += -1; }
  Index operator--(int) { return Index(at_--); }
  Index& operator+=(std::int64_t n) {
    at_ += n;
    return *this;
  }
  Index& operator-=(std::int64_t n) { return *this += -n; }
  Index operator+(std::int64_t n) const { return Index(at_ + n); }
  Index operator-(std::int64_t n) const { return Index(at_ - n); }
  std::int64_t operator-(Index other) const { return at_ - other.at_; }
  bool operator==(Index other) const { return at_ == other.at_; }
  bool operator!=(Index other) const { return at_ != other.at_; }
  bool operator<(Index other) const { return at_ < other.at_; }

 private:
  std::int64_t at_;
};

}  // namespace
