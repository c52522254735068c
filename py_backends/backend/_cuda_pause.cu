// pause: keeps a stream of a GPU waiting for so many of its clock's cycles.
// Model: one thread, which reads the clock.
extern "C" __global__ void pause(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
