// A data race: two threads add to one variable, and counts may be lost.
// Build: c++ -std=c++17 -O2 -pthread data_race.cpp -o data_race
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

template <typename Add>
void on_two_threads(Add add) {
  const auto work = [&](int thread) {
    for (int i = 0; i < 1000000; ++i) add(thread);
  };
  std::thread first(work, 0), second(work, 1);
  first.join(), second.join();
}

int main() {
  // 1. Each of two threads adds 1 a million times. An addition reads, adds and
  //    writes. If both read the same count, one of the two additions is lost.
  volatile int racy = 0;  // volatile: every addition goes to memory
  on_two_threads([&](int) { racy = racy + 1; });
  std::printf("a race: %d of 2000000; right or not, another run may lose some\n", racy);

  // 2. A mutex lets one thread in at a time, and holds the other one back.
  std::mutex mutex;
  int guarded = 0;
  on_two_threads([&](int) { std::unique_lock<std::mutex>{mutex}, ++guarded; });
  std::printf("with a mutex: %d\n", guarded);

  // 3. An atomic addition reads, adds and writes, and no other comes between.
  std::atomic<int> atomic{0};
  on_two_threads([&](int) { ++atomic; });
  std::printf("with an atomic: %d\n", atomic.load());

  // 4. A sum of its own for each thread needs neither: all are added up at last.
  int sums[2] = {};
  on_two_threads([&](int thread) { ++sums[thread]; });
  std::printf("with a sum a thread: %d\n", sums[0] + sums[1]);
}
