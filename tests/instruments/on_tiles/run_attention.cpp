// Runs attention for AMX, TEXT, without AMX: cases come from standard input, results go to standard output.
//
// A case is a line `M D N THREADS` and then the bytes of q, k and v in bfloat16; its answer is the bytes of c. Arrays are
// blocks of their own, so that a checker sees each end.
#include <omp.h>

#include <iostream>

#include "block.hpp"
#include "tiles.hpp"

#define __AMX_TILE__ 1
#include TEXT

int main() {
  std::int64_t m, d, n;
  int threads;
  while (std::cin >> m >> d >> n >> threads) {
    std::cin.get();
    omp_set_num_threads(threads);
    const Block<BFloat16> q = {0, std::size_t(m * d)}, k = {0, std::size_t(n * d)}, v = {0, std::size_t(n * d)};
    const Block<float> c = {0, std::size_t(m * d)};
    for (const auto* each : {&q, &k, &v}) std::cin.read(each->bytes(), each->count());
    std::memset(c.bytes(), 0xff, static_cast<std::size_t>(c.count()));
    if (!attention(q.first(), k.first(), v.first(), c.first(), m, d, n)) return 1;
    std::cout.write(c.bytes(), c.count());
  }
}
