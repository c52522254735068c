// Comes before a text in OpenCL C: what its header declares and the host has not, as far as texts use it.

#define FOUR_OF(type) type##4
#define FOUR(type) FOUR_OF(type)

static FOUR(T) on_threads_load_four(long at, global const T* from) {
  FOUR(T) four;
  for (int e = 0; e < 4; ++e) four[e] = from[4 * at + e];
  return four;
}
static void on_threads_store_four(FOUR(T) four, long at, global T* to) {
  for (int e = 0; e < 4; ++e) to[4 * at + e] = four[e];
}
#define vload4 on_threads_load_four
#define vstore4 on_threads_store_four

#undef FOUR
#undef FOUR_OF
