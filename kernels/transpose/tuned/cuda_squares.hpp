// What elements are moved in, and squares of narrow ones that are turned over in registers. Only cuda.cu includes this,
// and once: under instruments, several namespaces of one program hold that file.

namespace {

/// An unsigned integer of so many bytes, in which an element is moved.
template <int bytes>
struct Bits {
  using Type = unsigned;
};
template <>
struct Bits<1> {
  using Type = unsigned char;
};
template <>
struct Bits<2> {
  using Type = unsigned short;
};
template <>
struct Bits<8> {
  using Type = unsigned long long;
};

/// Turns a square over: word r of `x` holds its row r, the first element in the lowest bits.
__device__ __forceinline__ void turn(unsigned (&x)[2]) {
  const unsigned first = __byte_perm(x[0], x[1], 0x5410);
  x[1] = __byte_perm(x[0], x[1], 0x7632);
  x[0] = first;
}
__device__ __forceinline__ void turn(unsigned (&x)[4]) {
  const unsigned upper_left = __byte_perm(x[0], x[1], 0x5140), upper_right = __byte_perm(x[0], x[1], 0x7362);
  const unsigned lower_left = __byte_perm(x[2], x[3], 0x5140), lower_right = __byte_perm(x[2], x[3], 0x7362);
  x[0] = __byte_perm(upper_left, lower_left, 0x5410);
  x[1] = __byte_perm(upper_left, lower_left, 0x7632);
  x[2] = __byte_perm(upper_right, lower_right, 0x5410);
  x[3] = __byte_perm(upper_right, lower_right, 0x7632);
}
template <typename Word>
__device__ __forceinline__ void turn(Word (&)[1]) {}

}  // namespace
