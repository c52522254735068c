// A CPU with AMX for a program that is started with this in LD_PRELOAD, on x86-64 without AMX.
//
// Instructions that the CPU lacks raise a signal. Its handler executes those of tiles as tiles.hpp has them. To the
// program, the system also lists AMX, and lets it use tiles. CPUID is as it is: who asks that has to be told otherwise.
// At the end it says on standard error how often each instruction was executed, if TILES_COUNTED names a file.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <string>

#include "tiles.hpp"

namespace {

constexpr int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

enum Kind { configured, zeroed, loaded, stored, multiplied, kinds };
constexpr const char* names[kinds] = {"configured", "zeroed", "loaded", "stored", "multiplied"};
std::atomic<long> counts[kinds];

/// An instruction of tiles: VEX with three bytes, the map 0F38, 128 bits, W0. (Intel's manual, volume 2, chapter 2.)
struct Instruction {
  int opcode, prefix, to, a, b;  // registers; prefix: 0 none, 1 66, 2 F3, 3 F2
  bool in_memory;
  char* address;
  std::int64_t stride;
  const std::uint8_t* end;

  static bool decode(const gregset_t& values, Instruction& found) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(values[REG_RIP]);
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2 || (at[2] & 0x84) != 0) return false;
    const int index_bit = (~at[1] >> 6 & 1) << 3, base_bit = (~at[1] >> 5 & 1) << 3, modrm = at[4];
    found = {at[3], at[2] & 3, modrm >> 3 & 7, modrm & 7, ~at[2] >> 3 & 15, modrm >> 6 != 3, nullptr, 0, at + 5};
    if (found.in_memory) found.find_address(values, modrm, index_bit, base_bit);
    return true;
  }

  void find_address(const gregset_t& values, int modrm, int index_bit, int base_bit) {
    const int mode = modrm >> 6;
    int base = (modrm & 7) | base_bit;
    bool no_base = mode == 0 && (modrm & 7) == 5;
    const bool from_next = no_base;
    if ((modrm & 7) == 4) {
      const int sib = *end++, index = (sib >> 3 & 7) | index_bit;
      if (index != 4) stride = values[registers[index]] << (sib >> 6);
      base = (sib & 7) | base_bit;
      no_base = mode == 0 && (sib & 7) == 5;
    }
    std::int32_t displacement = 0;
    if (mode == 1) displacement = static_cast<std::int8_t>(*end++);
    if (mode == 2 || no_base) {
      std::memcpy(&displacement, end, sizeof displacement);
      end += sizeof displacement;
    }
    std::int64_t begin = no_base ? 0 : values[registers[base]];
    if (from_next) begin = reinterpret_cast<std::int64_t>(end);
    address = reinterpret_cast<char*>(begin + displacement);
  }

  bool execute() const {
    const auto is = [this](int code, int with) { return opcode == code && prefix == with; };
    if (is(0x49, 0) && in_memory) return tiles::load_configuration(address), count(configured);
    if (is(0x49, 0)) return tiles::release(), true;
    if (is(0x49, 3) && !in_memory) return tiles::zero(to), count(zeroed);
    if ((is(0x4b, 3) || is(0x4b, 1)) && in_memory) return tiles::load(to, address, stride), count(loaded);
    if (is(0x4b, 2) && in_memory) return tiles::store(to, address, stride), count(stored);
    if (is(0x5c, 2) && !in_memory) return tiles::multiply_bfloat16(to, a, b), count(multiplied);
    if (is(0x5e, 3) && !in_memory) return tiles::multiply_int8(to, a, b), count(multiplied);
    return false;
  }

  static bool count(Kind kind) { return ++counts[kind] > 0; }
};

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int set_handler(int number, const struct sigaction* set, struct sigaction* before) {
  static const auto sigaction_of_system = next<int (*)(int, const struct sigaction*, struct sigaction*)>("sigaction");
  return sigaction_of_system(number, set, before);
}

void handle(int number, siginfo_t*, void* context) {
  auto& values = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Instruction instruction;
  if (Instruction::decode(values, instruction) && instruction.execute()) {
    values[REG_RIP] = reinterpret_cast<greg_t>(instruction.end);
    return;
  }
  struct sigaction as_usual = {};
  as_usual.sa_handler = SIG_DFL;
  set_handler(number, &as_usual, nullptr);
}

[[gnu::constructor]] void begin() {
  struct sigaction ours = {};
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  set_handler(SIGILL, &ours, nullptr);
}

[[gnu::destructor]] void end() {
  const char* const path = std::getenv("TILES_COUNTED");
  std::FILE* const file = path != nullptr && counts[configured] > 0 ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  for (int kind = 0; kind < kinds; ++kind) std::fprintf(file, "%s %ld\n", names[kind], counts[kind].load());
  std::fclose(file);
}

/// A copy of what the system says of its CPUs, with AMX among their features.
int list_of_cpus(int file) {
  std::string all;
  char part[4096];
  for (ssize_t count; (count = read(file, part, sizeof part)) > 0;) all.append(part, static_cast<std::size_t>(count));
  close(file);
  for (std::size_t at = 0; (at = all.find("\nflags", at)) != std::string::npos; ++at) {
    all.insert(all.find('\n', at + 1), " amx_bf16 amx_tile amx_int8");
  }
  const int copy = memfd_create("cpuinfo", MFD_CLOEXEC);
  if (write(copy, all.data(), all.size()) < 0) std::abort();
  lseek(copy, 0, SEEK_SET);
  return copy;
}

}  // namespace

extern "C" {

/// Whoever wants to be told of instructions that the CPU lacks is not.
[[gnu::visibility("default")]] int sigaction(int number, const struct sigaction* set, struct sigaction* before) {
  if (number != SIGILL || set == nullptr) return set_handler(number, set, before);
  if (before != nullptr) *before = {};
  return 0;
}

[[gnu::visibility("default")]] long syscall(long number, ...) {
  static const auto syscall_of_system = next<long (*)(long, ...)>("syscall");
  constexpr long first_request = 0x1021, last_request = 0x1025, supported = 0x1021, permitted = 0x1022;
  std::va_list list;
  va_start(list, number);
  long x[6];
  for (long& each : x) each = va_arg(list, long);
  va_end(list);
  if (number == SYS_arch_prctl && x[0] >= first_request && x[0] <= last_request) {
    constexpr std::uint64_t tiles_too = 0x600e7;
    if (x[0] == supported || x[0] == permitted) std::memcpy(reinterpret_cast<void*>(x[1]), &tiles_too, 8);
    return 0;
  }
  return syscall_of_system(number, x[0], x[1], x[2], x[3], x[4], x[5]);
}

[[gnu::visibility("default")]] int open(const char* path, int flags, ...) {
  static const auto open_of_system = next<int (*)(const char*, int, ...)>("open64");
  std::va_list list;
  va_start(list, flags);
  const int file = open_of_system(path, flags, static_cast<mode_t>(va_arg(list, int)));
  va_end(list);
  return file >= 0 && std::strcmp(path, "/proc/cpuinfo") == 0 ? list_of_cpus(file) : file;
}

[[gnu::visibility("default"), gnu::alias("open")]] int open64(const char* path, int flags, ...);

}  // extern "C"
