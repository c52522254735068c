// The instructions of AMX as functions, for CPUs that have none, and with the faults that a CPU would raise.
//
// TDPBF16PS is what Intel's CPUs do, bit for bit: products with even and odd places are summed apart, in fused
// multiply-adds that begin with zero, then both are added, and that to c. Every step rounds to nearest even, and subnormal
// numbers, given or made, are zeros.
#pragma once

#include <immintrin.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tiles {

struct Tile {
  unsigned rows = 0, bytes = 0;
  unsigned char data[16][64];
};
inline thread_local Tile tile[8];
inline thread_local bool configured = false;

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "a fault of a tile instruction: %s\n", what);
  std::_Exit(4);
}

inline Tile& at(int number) {
  check(configured, "tiles are not configured");
  check(tile[number].rows > 0, "a tile without rows");
  return tile[number];
}

inline void load_configuration(const void* from) {
  const auto* const bytes = static_cast<const unsigned char*>(from);
  check(bytes[0] == 1, "another palette than 1");
  for (int i = 1; i < 16; ++i) check(bytes[i] == 0, "reserved bytes of a configuration that are not zero");
  for (int i = 0; i < 8; ++i) {
    std::uint16_t width;
    std::memcpy(&width, bytes + 16 + 2 * i, sizeof width);
    check(bytes[48 + i] <= 16 && width <= 64, "a tile that is too large");
    tile[i] = {bytes[48 + i], width, {}};
  }
  configured = true;
}

inline void release() { configured = false; }

inline void load(int number, const void* from, std::int64_t stride) {
  Tile& to = at(number);
  std::memset(to.data, 0, sizeof to.data);
  for (unsigned r = 0; r < to.rows; ++r) std::memcpy(to.data[r], static_cast<const char*>(from) + r * stride, to.bytes);
}

inline void store(int number, void* to, std::int64_t stride) {
  const Tile& from = at(number);
  for (unsigned r = 0; r < from.rows; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, from.data[r], from.bytes);
  }
}

inline void zero(int number) { std::memset(at(number).data, 0, sizeof(Tile::data)); }

inline void check_shapes(const Tile& c, const Tile& a, const Tile& b) {
  check(&c != &a && &a != &b && &b != &c, "one tile twice");
  check(a.bytes % 4 == 0 && b.bytes % 4 == 0, "rows that are no words");
  check(c.rows == a.rows && c.bytes == b.bytes && a.bytes == 4 * b.rows, "tiles that do not fit");
}

template <typename T>
T element(const Tile& of, unsigned row, unsigned column) {
  T found;
  std::memcpy(&found, of.data[row] + column * sizeof found, sizeof found);
  return found;
}

inline float flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

inline float of_bfloat16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t(bits) << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return flushed(x);
}

inline void multiply_bfloat16(int to, int left, int right) {
  Tile &c = at(to), &a = at(left), &b = at(right);
  check_shapes(c, a, b);
  for (unsigned m = 0; m < c.rows; ++m) {
    for (unsigned n = 0; n < c.bytes / 4; ++n) {
      float sum[2] = {};
      for (unsigned k = 0; k < a.bytes / 2; ++k) {
        const float x = of_bfloat16(element<std::uint16_t>(a, m, k));
        const float y = of_bfloat16(element<std::uint16_t>(b, k / 2, 2 * n + k % 2));
        sum[k % 2] = flushed(std::fma(x, y, sum[k % 2]));
      }
      const float all = flushed(flushed(element<float>(c, m, n)) + flushed(sum[0] + sum[1]));
      std::memcpy(c.data[m] + 4 * n, &all, sizeof all);
    }
  }
}

inline void multiply_int8(int to, int left, int right) {
  Tile &c = at(to), &a = at(left), &b = at(right);
  check_shapes(c, a, b);
  for (unsigned m = 0; m < c.rows; ++m) {
    for (unsigned n = 0; n < c.bytes / 4; ++n) {
      auto sum = element<std::uint32_t>(c, m, n);
      for (unsigned k = 0; k < a.bytes; ++k) {
        sum += std::uint32_t(element<std::int8_t>(a, m, k) * element<std::int8_t>(b, k / 4, 4 * n + k % 4));
      }
      std::memcpy(c.data[m] + 4 * n, &sum, sizeof sum);
    }
  }
}

}  // namespace tiles

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#define _tile_loadconfig tiles::load_configuration
#define _tile_release tiles::release
#define _tile_loadd tiles::load
#define _tile_stream_loadd tiles::load
#define _tile_stored tiles::store
#define _tile_zero tiles::zero
#define _tile_dpbf16ps tiles::multiply_bfloat16
#define _tile_dpbssd tiles::multiply_int8
