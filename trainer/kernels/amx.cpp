#include "trainer/kernels/amx.h"

#include "trainer/base/error.h"

#if FARSTEP_AMX_COMPILED
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace farstep {

#if FARSTEP_AMX_COMPILED

namespace {

// Tiles are 8 KiB of state a thread, which Linux gives to processes that ask for it.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, Linux 5.16
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx() {
  static const bool has =
      __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("amx-tile") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bf16") && may_use_tiles();
  return has;
}

#else

bool has_amx() {
  return false;
}

#endif

void lack_amx() {
  throw InternalError("built without AMX instructions: ask has_amx() before calling for them");
}

}  // namespace farstep
