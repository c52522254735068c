// What Hopper's tensor cores do, as functions. The 128 threads of a warpgroup, four neighbouring warps, together multiply
// matrices, one of which stays in shared memory. Only this file has the instructions. Before it, an emulation brings a
// class of the same name. It does what PTX ISA says of a warpgroup ("Register fragments", "Matrix descriptor"). Included
// once, like cuda_blocks.hpp.
//
// The instructions exist for sm_90a alone: no GPU before or after Hopper has them. WARPGROUPS says that they are there.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WARPGROUPS
#endif

namespace {

/// Lets the tensor cores see what this thread has copied to shared memory. They read it on a path of their own, without
/// the threads ("async proxy"). A barrier has to follow.
__device__ __forceinline__ void show_copies_to_tensor_cores() {
#if defined(__CUDA_ARCH__) && defined(WARPGROUPS)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#if defined(__CUDA_ARCH__) && defined(WARPGROUPS)

/// Where an instruction finds rows of 64 bytes in shared memory: 8 of them take 512 bytes, and chunks of 16 bytes are
/// permuted within 64 bytes (CUTLASS: Swizzle<2, 4, 3>). Addresses say how. So rows begin at a multiple of 512 bytes.
/// The instruction takes two chunks of each, from `chunk` on.
__device__ __forceinline__ unsigned long long described(const void* rows, unsigned chunk) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(rows));
  constexpr unsigned long long not_used = 1, chunks_of_8_rows = 512 / 16, permuted_in_64_bytes = 2;
  return address / 16 + chunk | not_used << 16 | chunks_of_8_rows << 32 | permuted_in_64_bytes << 62;
}

// clang-format off
#define FOUR(constraint, i) constraint(sum[i]), constraint(sum[i + 1]), constraint(sum[i + 2]), constraint(sum[i + 3])
#define START(instruction, constraint, scales)                                                                     \
  asm volatile("wgmma.mma_async.sync.aligned." instruction                                                         \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
               "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1" scales ";"   \
               : FOUR(constraint, 0), FOUR(constraint, 4), FOUR(constraint, 8), FOUR(constraint, 12),              \
                 FOUR(constraint, 16), FOUR(constraint, 20), FOUR(constraint, 24), FOUR(constraint, 28)            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
// clang-format on

__device__ __forceinline__ void start_product(Float16, float (&sum)[32], const unsigned (&a)[4], unsigned long long b) {
  START("m64n64k16.f32.f16.f16", "+f", ", 1, 1, 0");
}

__device__ __forceinline__ void start_product(BFloat16, float (&sum)[32], const unsigned (&a)[4],
                                              unsigned long long b) {
  START("m64n64k16.f32.bf16.bf16", "+f", ", 1, 1, 0");
}

/// Without .satfinite: sums wrap around.
__device__ __forceinline__ void start_product(std::int8_t, std::int32_t (&sum)[32], const unsigned (&a)[4],
                                              unsigned long long b) {
  START("m64n64k32.s32.s8.s8", "+r", "");
}

#undef START
#undef FOUR

__device__ __forceinline__ void hold_register(float& x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ __forceinline__ void hold_register(unsigned& x) { asm volatile("" : "+r"(x)::"memory"); }
__device__ __forceinline__ void hold_register(std::int32_t& x) { asm volatile("" : "+r"(x)::"memory"); }

/// The products that a warpgroup has under way, of elements of T.
template <typename T>
struct LateProducts {
  /// Before `begin`, for all operands in registers, and after `wait`, for sums: keeps the compiler from moving what
  /// writes or reads them to the other side.
  template <typename Register, int count>
  static __device__ __forceinline__ void hold(Register (&registers)[count]) {
#pragma unroll
    for (int each = 0; each < count; ++each) hold_register(registers[each]);
  }

  /// Before products, after their operands were written to registers.
  __device__ __forceinline__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

  /// Starts to add to the sums the product of 64 rows of a and 64 columns of b, both 32 bytes deep.
  ///
  /// A thread's sums and its part of a are in the order of cuda_warp_matrices.hpp: warp w has rows 16 w to 16 w + 15, and
  /// sums of 8 times 8 columns, 4 of each. The columns of b are rows in shared memory, from chunk `chunk` on.
  __device__ __forceinline__ void start(Sum<T> (&sum)[32], const unsigned (&a)[4], const void* b, unsigned chunk) {
    start_product(T{}, sum, a, described(b, chunk));
  }

  /// Until this returns, nothing may touch sums, a or b.
  __device__ __forceinline__ void wait() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
};

#endif

}  // namespace
