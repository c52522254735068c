// What tensor cores do, as functions. The 32 threads of a warp together load small matrices from shared memory, and
// multiply them. Only this file has the instructions. Before it, an emulation brings functions of the same names. In a
// sub-group of 32 work items, they do what PTX ISA says of a warp ("Matrix fragments", "ldmatrix"). Included once, like
// cuda_blocks.hpp.
//
// A fragment is a thread's part of a matrix: registers of 32 bits, each of which holds neighbours in the depth of the
// product. Thread `4 g + t` of a warp has these, in the order of registers.
//   Of 16 rows of a, 32 bytes deep: bytes 4 t to 4 t + 3 of rows g and g + 8, and the same bytes of the second half.
//   Of 8 columns of b, 32 bytes deep: of column g, the same bytes as of row g of a.
//   Of 16 x 8 sums: columns 2 t and 2 t + 1 of row g, and of row g + 8.
//   Of float64, a fragment is 8 deep, and each register has 64 bits. Of rows g and g + 8 of a, and of column g of b, the
//   thread has the elements t of both halves.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

namespace {

/// Loads four matrices of 8 rows of 16 bytes. Thread `8 j + r` names row r of matrix j. Of each matrix, thread `4 g +
/// t` receives bytes 4 t to 4 t + 3 of row g.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// Loads the same matrices, of 8 x 8 elements of 16 bits, transposed. Thread `4 g + t` receives what rows 2 t and 2 t +
/// 1 have in column g.
__device__ __forceinline__ void load_transposed_matrices(unsigned (&to)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// Adds the product of fragments of a and b to a fragment of sums. The first argument says which format they have.
__device__ __forceinline__ void multiply_add(Float16, float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply_add(BFloat16, float (&sum)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Without .satfinite: sums wrap around.
__device__ __forceinline__ void multiply_add(std::int8_t, std::int32_t (&sum)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Before compute capability 9.0 an instruction takes 8 rows of a, 4 deep.
__device__ __forceinline__ void multiply_add(double, double (&sum)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int each = 0; each < 4; ++each) {
    const int half = each % 2 * 2, depth = each / 2;
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sum[half]), "+d"(sum[half + 1])
        : "d"(a[each]), "d"(b[depth]));
  }
#endif
}

}  // namespace

#endif
