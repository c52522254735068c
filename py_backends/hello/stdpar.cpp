// C++ standard parallelism: algorithms of the standard library run on threads.
// Build: c++ -std=c++17 -O2 stdpar.cpp -ltbb -o stdpar
// Library: oneTBB, for instance pip install tbb-devel, or apt install libtbb-dev
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdio>
#include <execution>
#include <functional>
#include <numeric>
#include <vector>

int main() {
  // 1. The GNU library has its algorithms run by oneTBB. Without oneTBB's
  //    headers, they would use one thread.
  std::printf("%d threads at most\n", tbb::this_task_arena::max_concurrency());

  // 2. An algorithm calls a function for each element of a and b. Its first
  //    argument, the policy, says what the library may do: `par` allows
  //    several threads.
  std::vector<int> a(10), b(10), c(10);
  std::iota(a.begin(), a.end(), 0);
  for (int i = 0; i < 10; ++i) b[i] = 10 * i;
  const auto add = [](int x, int y) { return x + y; };
  std::transform(std::execution::par, a.begin(), a.end(), b.begin(), c.begin(), add);

  // 3. It returns when all is done, so the next line can read the results.
  for (int each : c) std::printf("%d ", each);
  std::printf("\n");

  // 4. `par_unseq` also allows vector instructions. Calls that add to one
  //    variable would disturb one another, so the sum has an algorithm too.
  const int sum = std::reduce(std::execution::par_unseq, a.begin(), a.end());
  std::printf("0 + 1 + ... + 9 = %d\n", sum);

  // 5. Most algorithms take a policy. This one sorts, the largest first.
  std::sort(std::execution::par, c.begin(), c.end(), std::greater<>());
  std::printf("%d is the largest\n", c[0]);
}
