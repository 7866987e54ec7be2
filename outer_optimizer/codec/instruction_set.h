// Loops compiled for two instruction sets, one of which is chosen while running: binaries move
// between machines.
//
// A kernel is a struct with a static `run`. Its loops are plain C++ that the compiler vectorises;
// they must give the same bits in both sets, so they add floats in an order of their own. Function
// multiversioning by the linker (ifunc) would run before the sanitizers are set up. Thread-safe.
#pragma once

namespace farstep {

// AVX-512 would be no faster: 256-bit loops outrun the memory.
enum class InstructionSet { kBaseline, kAvx2 };

// The wider set that this processor and its operating system support.
InstructionSet widest_instruction_set();

namespace detail {

#ifdef __x86_64__
template <typename Kernel, typename... Arguments>
[[gnu::flatten, gnu::target("avx2")]] void run_avx2(Arguments... arguments) {
  Kernel::run(arguments...);
}
#endif

}  // namespace detail

// Kernel::run(arguments...), compiled for `set`, which the processor must support.
template <typename Kernel, typename... Arguments>
void run_kernel([[maybe_unused]] InstructionSet set, Arguments... arguments) {
#ifdef __x86_64__
  if (set == InstructionSet::kAvx2) return detail::run_avx2<Kernel>(arguments...);
#endif
  Kernel::run(arguments...);
}

}  // namespace farstep
