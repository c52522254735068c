// Runs matmul for AMX, TEXT, without AMX: cases come from standard input, results go to standard output.
//
// A case is a line `DTYPE M N K THREADS OFFSET` and then the bytes of a and b; its answer is the bytes of c. Arrays are
// blocks of their own, so that a checker sees each end; OFFSET elements lie before the first.
#include <omp.h>
#include <stdio.h>

#include <iostream>
#include <string>

#include "block.hpp"
#include "tiles.hpp"

/// Caches as small as makes several blocks of small matrices.
static FILE* small_cache(const char*, const char* mode) { return fmemopen(const_cast<char*>("64K"), 3, mode); }
#define fopen small_cache
#define __AMX_TILE__ 1
#include TEXT

template <typename T>
static bool run(std::int64_t m, std::int64_t n, std::int64_t k, std::size_t offset) {
  const Block<T> a = {offset, std::size_t(m * k)}, b = {offset, std::size_t(k * n)};
  const Block<Sum<T>> c = {offset, std::size_t(m * n)};
  std::cin.read(a.bytes(), a.count());
  std::cin.read(b.bytes(), b.count());
  std::memset(c.bytes(), 0xff, c.count());
  if (!matmul(a.first(), b.first(), c.first(), m, n, k)) return false;
  std::cout.write(c.bytes(), c.count());
  return true;
}

int main() {
  std::string dtype;
  std::int64_t m, n, k, offset;
  int threads;
  while (std::cin >> dtype >> m >> n >> k >> threads >> offset) {
    std::cin.get();
    omp_set_num_threads(threads);
    const auto function = dtype == "float16" ? run<Float16> : dtype == "bfloat16" ? run<BFloat16> : run<std::int8_t>;
    if (!function(m, n, k, static_cast<std::size_t>(offset))) return 1;
  }
}
