// What all ways of cuda.cu to compute matmul share: how many threads a block has, which tiles of c it takes, and how it
// copies to shared memory. Only cuda.cu and that of attention include this, and once: under instruments, several
// namespaces of one program hold these files.

namespace {

using Size = long long;

/// A block: 4 warps.
constexpr int threads = 128, threads_of_warp = 32;
/// Slices in shared memory, without tensor cores. One is multiplied while the others arrive, which takes hundreds of
/// cycles.
constexpr int slices = 3;
/// Rows of tiles that are computed together. Blocks that work at the same time then read the same parts of a and b,
/// which stay in the second-level cache.
constexpr Size band = 16;

/// Neighbours that one instruction reads or writes, aligned as a whole.
template <typename T, int count>
struct alignas(count * sizeof(T)) Neighbours {
  static constexpr int size = count;
  T element[count];
};
/// At most 16 bytes.
template <typename T>
using Vector = Neighbours<T, 16 / sizeof(T)>;

__device__ __forceinline__ Size least(Size x, Size y) { return x < y ? x : y; }
__device__ __forceinline__ Size parts(Size whole, Size part) { return (whole + part - 1) / part; }

__device__ __forceinline__ bool aligned(const void* address, int bytes) {
  return reinterpret_cast<unsigned long long>(address) % bytes == 0;
}

__device__ __forceinline__ Size multiprocessors() {
#if defined(__CUDA_ARCH__)
  unsigned count;
  asm("mov.u32 %0, %%nsmid;" : "=r"(count));
  return count;
#else
  return 2;
#endif
}

/// The shared memory that a block was given at its launch. An emulation gives none.
__device__ __forceinline__ void* given_memory() {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(1024) uint4 given[];
  return given;
#else
  return nullptr;
#endif
}

/// Which thread of its block this is, counted along the warps, and which of all blocks.
struct Worker {
  int thread;
  Size block, blocks;
};

struct PlaceOfTile {
  Size down, across;
};

/// The place of a tile, by its number in the order of work.
__device__ __forceinline__ PlaceOfTile place_of_tile(Size tile, Size down, Size across) {
  const Size above = tile / (band * across) * band, height = least(band, down - above);
  const Size of_band = tile - above * across;
  return {above + of_band % height, of_band / height};
}

/// Starts to copy 4, 8 or 16 bytes to shared memory, or zeros where they are not `there`. They have arrived when their
/// group has, and before compute capability 8.0 when this returns.
template <typename Piece>
__device__ __forceinline__ void start_copy(Piece* to, const Piece* from, bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = there ? sizeof(Piece) : 0;
  if constexpr (sizeof(Piece) == 16)  // also past the first-level cache
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(sizeof(Piece)),
                 "r"(bytes));
#else
  *to = there ? *from : Piece{};
#endif
}

template <typename T, int count>
__device__ __forceinline__ Neighbours<Sum<T>, count> widened(const Neighbours<T, count>& from) {
  Neighbours<Sum<T>, count> to;
#pragma unroll
  for (int e = 0; e < count; ++e) to.element[e] = widen(from.element[e]);
  return to;
}

/// Starts to copy neighbours to shared memory, or zeros where they are not `there`. Where they are widened on their way
/// they have arrived when this returns.
template <typename T, int count>
__device__ __forceinline__ void start_widened_copy(Neighbours<Sum<T>, count>* to, const Neighbours<T, count>* from,
                                                   bool there) {
  if constexpr (sizeof(*to) == sizeof(*from))
    start_copy(to, from, there);
  else
    *to = widened(there ? *from : Neighbours<T, count>{});
}

__device__ __forceinline__ void end_group_of_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits for all of this thread's groups but the `latest` ones.
template <int latest>
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(latest) : "memory");
#endif
}

}  // namespace
