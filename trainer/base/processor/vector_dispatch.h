// Compiles loops for several instruction sets and chooses one at run time.
//
// A kernel is a function whose loops are plain C++ that the compiler vectorises. Everything that it
// calls is inlined and so compiled for the same set; it must call directly and only functions with
// visible bodies. Multiversioning by the loader (target_clones) was not used: it ignores
// limit_instruction_set(), and it runs before the sanitizers are set up. Thread-safe.
#pragma once

#include "trainer/base/processor/instruction_set.h"

namespace farstep {

namespace detail {

#if defined(__x86_64__) && defined(__GNUC__)
#define FARSTEP_HAS_VECTOR_SETS 1

// Exactly the instructions that instruction_set() checks for: AVX2 with FMA, and AVX-512.
template <auto kernel, typename... Arguments>
[[gnu::flatten, gnu::target("avx2,fma")]] auto run_avx2(Arguments... arguments) {
  return kernel(arguments...);
}
template <auto kernel, typename... Arguments>
[[gnu::flatten, gnu::target("avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]] auto
run_avx512(Arguments... arguments) {
  return kernel(arguments...);
}

#endif

}  // namespace detail

// Calls kernel(arguments...), compiled for the widest of baseline, AVX2 and AVX-512 that `set`
// includes. The processor must have it. Arguments are copied, so that no store in a loop can change
// them.
template <auto kernel, typename... Arguments>
auto run_vector_code_of([[maybe_unused]] InstructionSet set, Arguments... arguments) {
#ifdef FARSTEP_HAS_VECTOR_SETS
  if (set >= InstructionSet::kAvx512) return detail::run_avx512<kernel>(arguments...);
  if (set >= InstructionSet::kAvx2) return detail::run_avx2<kernel>(arguments...);
#endif
  return kernel(arguments...);
}

// Does the same for instruction_set().
template <auto kernel, typename... Arguments>
auto run_vector_code(Arguments... arguments) {
  return run_vector_code_of<kernel>(instruction_set(), arguments...);
}

}  // namespace farstep
