// OpenMP: one directive divides a loop among threads, which share memory.
// Build: c++ -O2 -fopenmp openmp.cpp -o openmp
#include <omp.h>

#include <cstdio>

int main() {
  // 1. The program begins on one thread. It may use one for each processor.
  std::printf("%d processors\n", omp_get_num_procs());
  std::printf("%d threads at most\n", omp_get_max_threads());

  // 2. The directive gives each thread a part of the ten iterations.
  //    Every iteration says which thread runs it. Threads run at the same
  //    time, so the order of these lines may change from run to run.
  constexpr int n = 10;
  int runner[n];
#pragma omp parallel for
  for (int i = 0; i < n; ++i) {
    runner[i] = omp_get_thread_num();
    std::printf("iteration %d: I am thread %d\n", i, runner[i]);
  }

  // 3. The threads wrote to one array. After the loop the first thread goes
  //    on alone, and reads what all of them wrote.
  for (int i = 0; i < n; ++i) std::printf("%d ", runner[i]);
  std::printf("\n");

  // 4. Threads that add to one variable would disturb one another. With
  //    `reduction` each has its own sum, and OpenMP adds these at the end.
  int sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += i;
  std::printf("0 + 1 + ... + 9 = %d\n", sum);
}
