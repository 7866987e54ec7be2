#include "trainer/base/processor/instruction_set.h"

#include <algorithm>
#include <array>
#include <atomic>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace farstep {

namespace {

#if defined(__x86_64__) && defined(__linux__)

// Tiles add 8 KiB to the state of a thread, so Linux permits them only to processes that ask.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, Linux 5.16
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Asks the processor itself: clang 14's __builtin_cpu_supports does not know tiles. Only
// may_use_tiles() finds out whether the system saves their state.
bool has_bf16_tiles() {
  constexpr unsigned kFeatures = 7, kBf16 = 1U << 22, kTiles = 1U << 24;  // CPUID, in edx
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBf16) != 0 &&
         (edx & kTiles) != 0;
}

InstructionSet detect() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return InstructionSet::kBaseline;
  }
  // One level for all of Skylake-X's subsets, as the code that is compiled for it uses them all.
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return InstructionSet::kAvx2;
  }
  if (!__builtin_cpu_supports("avx512bf16")) return InstructionSet::kAvx512;
  if (!has_bf16_tiles() || !may_use_tiles()) return InstructionSet::kAvx512Bf16;
  return InstructionSet::kAmx;
}

#else

InstructionSet detect() {
  return InstructionSet::kBaseline;
}

#endif

// Relaxed: it is set before other threads start, and no other memory depends on it.
std::atomic<InstructionSet> limit = InstructionSet::kAmx;

}  // namespace

std::span<const std::string_view> enum_names(InstructionSet) {
  static constexpr std::array<std::string_view, 5> kNames{"baseline", "avx2", "avx512",
                                                          "avx512_bf16", "amx"};
  return kNames;
}

InstructionSet widest_instruction_set() {
  // Asked once: each request for tiles is a system call, and kernels ask for their set often.
  static const InstructionSet widest = detect();
  return widest;
}

InstructionSet instruction_set() {
  return std::min(widest_instruction_set(), limit.load(std::memory_order_relaxed));
}

void limit_instruction_set(InstructionSet set) {
  limit.store(set, std::memory_order_relaxed);
}

}  // namespace farstep
