// dot: c = the sum of a[i] b[i] for vectors of n elements.
// Idea: sum every eighth product by itself. No addition waits for one to another sum, so several are under way at once.
// Model: C++ in one thread. The sums are independent, so the compiler may keep some of them in one vector register.
// Memory: reads a and b once, in order.
// Edges: what is left after the last eight products is added one at a time; an empty sum is 0.
// ---
// Formats: float32, float64
#include <cstdint>

template <typename T>
static void dot(const T* a, const T* b, T* c, std::int64_t n) {
  constexpr std::int64_t sums = 8;
  T sum[sums] = {};
  std::int64_t i = 0;
  for (; i + sums <= n; i += sums) {
    for (std::int64_t at = 0; at < sums; ++at) sum[at] += a[i + at] * b[i + at];
  }
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  for (std::int64_t at = 1; at < sums; ++at) sum[0] += sum[at];
  c[0] = sum[0];
}
