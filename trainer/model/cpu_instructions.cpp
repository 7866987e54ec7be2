// One limit for all: LibTorch and its libraries choose instructions by themselves, from environment
// variables that they read once. Without the limit a site's measured speed would not be its
// configured one.
#include "trainer/model/cpu_instructions.h"

#include <ATen/Version.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "trainer/config/fields.h"

namespace farstep {

namespace {

// The names of a set in the environment variables that the libraries read at first use.
struct LibraryNames {
  const char *torch, *onednn, *mkl;
};
// By number of the instruction set. AMX needs no entry, as nothing is limited then.
constexpr std::array<LibraryNames, 4> kLibraryNames{{
    {"default", "SSE41", "SSE4_2"},
    {"avx2", "AVX2", "AVX2"},
    {"avx512", "AVX512_CORE", "AVX512"},
    {"avx512", "AVX512_CORE_BF16", "AVX512_E3"},
}};

}  // namespace

void limit_cpu_instructions(InstructionSet set) {
  limit_instruction_set(set);
  const auto index = static_cast<std::size_t>(set);
  if (index >= kLibraryNames.size()) return;
  const auto& names = kLibraryNames[index];
  // A variable that the user has set takes precedence.
  setenv("ATEN_CPU_CAPABILITY", names.torch, /*overwrite=*/0);
  setenv("ONEDNN_MAX_CPU_ISA", names.onednn, /*overwrite=*/0);
  setenv("MKL_ENABLE_INSTRUCTIONS", names.mkl, /*overwrite=*/0);
}

std::string cpu_instructions_text() {
  const auto set = instruction_set(), widest = widest_instruction_set();
  return fmt::format(
      "{}{}; LibTorch's: {}", name_of(set),
      set == widest ? "" : fmt::format(", limited from {} by the config", name_of(widest)),
      at::get_cpu_capability());
}

}  // namespace farstep
