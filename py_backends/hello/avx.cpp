// SSE, AVX and FMA: one instruction computes on a register full of numbers.
// Build: c++ -O2 -mfma avx.cpp -o avx
// Needs: fma
#include <immintrin.h>

#include <cstdio>

static void print(const char* name, const float* x) {
  std::printf("%-7s", name);
  for (int i = 0; i < 8; ++i) std::printf(" %3g", x[i]);
  std::printf("\n");
}

int main() {
  // 1. Eight numbers lie side by side in memory, and eight more.
  const float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const float b[8] = {10, 20, 30, 40, 50, 60, 70, 80};
  float c[8];
  print("a", a);
  print("b", b);

  // 2. A register of SSE has 128 bits: four floats. Two additions do it.
  _mm_storeu_ps(c, _mm_add_ps(_mm_loadu_ps(a), _mm_loadu_ps(b)));
  _mm_storeu_ps(c + 4, _mm_add_ps(_mm_loadu_ps(a + 4), _mm_loadu_ps(b + 4)));
  print("a+b", c);

  // 3. A register of AVX has 256 bits: eight floats. One addition does it.
  const __m256 x = _mm256_loadu_ps(a), y = _mm256_loadu_ps(b);
  _mm256_storeu_ps(c, _mm256_add_ps(x, y));
  print("a+b", c);

  // 4. FMA multiplies and adds: one instruction, sixteen operations.
  _mm256_storeu_ps(c, _mm256_fmadd_ps(x, y, _mm256_set1_ps(100)));
  print("ab+100", c);

  // 5. The slide's kind of FMA subtracts in even lanes and adds in odd ones.
  _mm256_storeu_ps(c, _mm256_fmaddsub_ps(x, y, _mm256_set1_ps(5)));
  print("ab-+5", c);
}
