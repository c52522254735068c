// What AMX is told before tiles are used: all of them have their full size.
//
// Everything is in an unnamed namespace, for the reason that workspace.hpp gives.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace {

/// What the tiles are: 16 rows of 64 bytes each.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline void configure_tiles() {
  const TileConfiguration wanted;
  // GCC's intrinsic says that it reads 8 of the 64 bytes. Without this the others are not even written.
  __asm__ volatile("" : : "r"(&wanted) : "memory");
  _tile_loadconfig(&wanted);
}

}  // namespace
