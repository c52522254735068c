// Stands before every source in OpenCL C, which has no types for the 16-bit formats. Sources widen what they load,
// compute in Sum, and narrow what they store. It is for elements, and for vectors of 2, 4, 8 and 16 of them.

#define FUNCTION __attribute__((overloadable, always_inline))

#if FORMAT_float16

/// Without an extension, a half exists only in memory. Intel's compiler makes one instruction of these, without a copy.
#define WIDEN_AND_NARROW(lanes)                                                                          \
  FUNCTION float##lanes widen(ushort##lanes x) { return vload_half##lanes(0, (const private half*)&x); } \
  FUNCTION ushort##lanes narrow(float##lanes x) {                                                        \
    ushort##lanes nearest;                                                                               \
    vstore_half##lanes##_rte(x, 0, (private half*)&nearest);                                             \
    return nearest;                                                                                      \
  }

#if HAS_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
/// With the extension, halves are converted. Compilers make vectors across work items of that, but not of loads of a
/// half.
FUNCTION float widen(ushort x) { return as_half(x); }
FUNCTION ushort narrow(float x) { return as_ushort(convert_half_rte(x)); }
#else
WIDEN_AND_NARROW()
#endif

#elif FORMAT_bfloat16

/// The upper half of a float, rounded to the nearest, and of two equally near ones to the even one. NaN stays NaN.
#define WIDEN_AND_NARROW(lanes)                                                                          \
  FUNCTION float##lanes widen(ushort##lanes x) { return as_float##lanes(convert_uint##lanes(x) << 16); } \
  FUNCTION ushort##lanes narrow(float##lanes x) {                                                        \
    const uint##lanes bits = as_uint##lanes(x), rounded = bits + 0x7fffu + (bits >> 16 & 1u);            \
    return convert_ushort##lanes((x != x ? bits | 0x400000u : rounded) >> 16);                           \
  }
WIDEN_AND_NARROW()

#elif FORMAT_int8

#define WIDEN_AND_NARROW(lanes) \
  FUNCTION int##lanes widen(char##lanes x) { return convert_int##lanes(x); }
WIDEN_AND_NARROW()

#else

#define widen(x) (x)
#define narrow(x) (x)

#endif

#ifdef WIDEN_AND_NARROW
WIDEN_AND_NARROW(2)
WIDEN_AND_NARROW(4)
#ifdef __has_builtin
#if FORMAT_float16 && defined(__F16C__) && __has_builtin(__builtin_ia32_vcvtph2ps256)
#define CONVERTS_EIGHT
#endif
#endif
#ifdef CONVERTS_EIGHT
/// PoCL converts one element after the other, unless it is told by which instruction. clang 22 no longer has its name.
FUNCTION float8 widen(ushort8 x) { return __builtin_ia32_vcvtph2ps256(as_short8(x)); }
FUNCTION ushort8 narrow(float8 x) { return as_ushort8(__builtin_ia32_vcvtps2ph256(x, 0)); }
#else
WIDEN_AND_NARROW(8)
#endif
#if defined(CONVERTS_EIGHT) || (defined(__AVX__) && !defined(__AVX512F__))
/// Code without AVX-512 hands vectors of 64 bytes over in another way than PoCL's library, compiled with it, expects.
#if FORMAT_int8
FUNCTION int16 widen(char16 x) { return (int16)(widen(x.lo), widen(x.hi)); }
#else
FUNCTION float16 widen(ushort16 x) { return (float16)(widen(x.lo), widen(x.hi)); }
FUNCTION ushort16 narrow(float16 x) { return (ushort16)(narrow(x.lo), narrow(x.hi)); }
#endif
#else
WIDEN_AND_NARROW(16)
#endif
#undef WIDEN_AND_NARROW
#endif
#undef FUNCTION
