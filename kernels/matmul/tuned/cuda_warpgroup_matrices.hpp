// What Hopper's tensor cores do, as functions. The 128 threads of a warpgroup, four neighbouring warps, together multiply
// matrices, one or both of which stay in shared memory. Only this file has the instructions. Before it, an emulation brings a
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

/// Where an instruction finds a matrix in shared memory, in lines of 128 bytes: 8 of them take 1024 bytes, and their
/// chunks of 16 bytes are permuted (CUTLASS: Swizzle<3, 4, 3>). Addresses say how. So lines begin at a multiple of 1024
/// bytes.
///
/// to_next: bytes from lines to those that hold the same 16 rows' next columns. Not used where the depth runs along
/// lines.
__device__ __forceinline__ unsigned long long described(const void* lines, unsigned to_next = 16) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(lines));
  constexpr unsigned long long to_next_8_lines = 1024 / 16, permuted_in_128_bytes = 1;
  return address / 16 | (unsigned long long)(to_next / 16) << 16 | to_next_8_lines << 32 | permuted_in_128_bytes << 62;
}

// clang-format off
#define FOUR(constraint, i) constraint(sum[i]), constraint(sum[i + 1]), constraint(sum[i + 2]), constraint(sum[i + 3])
#define SIXTEEN(constraint, i) FOUR(constraint, i), FOUR(constraint, i + 4), FOUR(constraint, i + 8), \
                               FOUR(constraint, i + 12)
#define REGISTERS_OF_32                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_OF_64                                                                                          \
  REGISTERS_OF_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define START(instruction)                                                                                     \
  asm volatile("wgmma.mma_async.sync.aligned." instruction " {" REGISTERS_OF_64 "}, %64, %65, 1, 1, 1, 0, 1;" \
               : SIXTEEN("+f", 0), SIXTEEN("+f", 16), SIXTEEN("+f", 32), SIXTEEN("+f", 48) : "l"(a), "l"(b))
#define START_FROM_REGISTERS(instruction)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned." instruction " {" REGISTERS_OF_32 "}, {%32, %33, %34, %35}, %36, 1;" \
               : SIXTEEN("+r", 0), SIXTEEN("+r", 16) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
// clang-format on

__device__ __forceinline__ void start_product(Float16, float (&sum)[64], unsigned long long a, unsigned long long b) {
  START("m64n128k16.f32.f16.f16");
}

__device__ __forceinline__ void start_product(BFloat16, float (&sum)[64], unsigned long long a, unsigned long long b) {
  START("m64n128k16.f32.bf16.bf16");
}

/// Without .satfinite: sums wrap around.
__device__ __forceinline__ void start_product(std::int8_t, std::int32_t (&sum)[32], const unsigned (&a)[4],
                                              unsigned long long b) {
  START_FROM_REGISTERS("m64n64k32.s32.s8.s8");
}

#undef START_FROM_REGISTERS
#undef START
#undef REGISTERS_OF_64
#undef REGISTERS_OF_32
#undef SIXTEEN
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

  /// Starts to add to the sums the product of 64 rows of a and 128 columns of b, both 32 bytes deep, of 16 bits.
  ///
  /// A thread's sums are in the order of cuda_warp_matrices.hpp: warp w has rows 16 w to 16 w + 15, and sums of 16 times
  /// 8 columns, 4 of each. Lines of shared memory hold rows of a, of which chunks `chunk` and `chunk + 1` are taken,
  /// and 64 columns of 16 rows of b. The other columns are in the lines of the next part, 64 lines on.
  __device__ __forceinline__ void start(float (&sum)[64], const void* a, unsigned chunk, const void* b) {
    start_product(T{}, sum, described(a) + chunk, described(b, 64 * 128));
  }

  /// The same for int8, with 64 columns of b: rows in shared memory. A thread's part of a is in registers.
  __device__ __forceinline__ void start(std::int32_t (&sum)[32], const unsigned (&a)[4], const void* b,
                                        unsigned chunk) {
    start_product(T{}, sum, a, described(b) + chunk);
  }

  /// After products: no more of them until they have been waited for.
  __device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

  /// Until this returns, nothing may touch sums, a or b.
  __device__ __forceinline__ void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
};

#endif

}  // namespace
