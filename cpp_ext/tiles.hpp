// Whether this process may use AMX: the CPU must have it, and the operating system must let it. Tiles make a thread's
//   state several times as large, so Linux gives them only to processes that ask.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace {

/// Whether the CPU has AMX-TILE, AMX-BF16 and AMX-INT8. `__builtin_cpu_supports` knows them in few compilers.
inline bool cpu_has_tiles() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24, int8 = 1u << 25, all = bf16 | tile | int8;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & all) == all;
}

/// Asks for tiles for all threads of this process. Returns why there are none, or nothing where they may be used.
inline std::string refusal_of_tiles() {
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA of asm/prctl.h
  if (syscall(SYS_arch_prctl, request, tile_data) == 0) return "";
  return std::string("the system does not let this process use AMX tiles: ") + std::strerror(errno);
}

/// Why AMX cannot be used, or nothing where it can. Asks the system once.
inline const std::string& why_no_tiles() {
  static const std::string why =
      cpu_has_tiles() ? refusal_of_tiles() : "this CPU lacks AMX-TILE, AMX-BF16 and AMX-INT8";
  return why;
}

}  // namespace

#endif
