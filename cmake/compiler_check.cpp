// What the sources need of a compiler. cmake/set_up.sh and CMake try it before anything else.
#include <vector>

// The vector instructions of the kernels have names that older versions of g++ do not know.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
#error
#endif

int main() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
#endif
}
