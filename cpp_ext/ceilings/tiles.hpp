// Multiply-adds by Intel's AMX: six tiles of sums, which do not wait for one another, and one tile of each factor.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "../../kernels/formats.hpp"
#include "../../kernels/matmul/tuned/tile_configuration.hpp"

namespace {

constexpr std::int64_t sums = 6, elements_of_sum = 16 * 16;

/// Products that one instruction adds to each sum. A product of float16 takes four of bfloat16, since each factor is
/// the sum of two.
template <typename T>
constexpr double products = 32;
template <>
constexpr double products<Float16> = 32 / 4.0;
template <>
constexpr double products<std::int8_t> = 64;

inline void add_products(float) {
  _tile_dpbf16ps(0, 6, 7);
  _tile_dpbf16ps(1, 6, 7);
  _tile_dpbf16ps(2, 6, 7);
  _tile_dpbf16ps(3, 6, 7);
  _tile_dpbf16ps(4, 6, 7);
  _tile_dpbf16ps(5, 6, 7);
}
inline void add_products(std::int32_t) {
  _tile_dpbssd(0, 6, 7);
  _tile_dpbssd(1, 6, 7);
  _tile_dpbssd(2, 6, 7);
  _tile_dpbssd(3, 6, 7);
  _tile_dpbssd(4, 6, 7);
  _tile_dpbssd(5, 6, 7);
}

/// `count` multiply-adds of elements of T, all zeros: tiles take equally long for all numbers.
template <typename T>
void multiply_add_tiles(Sum<T>* c, std::int64_t count) {
  configure_tiles();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  const auto steps = static_cast<std::int64_t>(static_cast<double>(count) / (sums * elements_of_sum * products<T>));
  for (std::int64_t step = 0; step < steps; ++step) add_products(Sum<T>(0));
  Sum<T> elements[elements_of_sum];
  _tile_stored(0, elements, 64);
  *c = elements[0];
  _tile_release();
}

}  // namespace
