// Intel's matrix instructions (AMX): products of tiles, 16 rows of 64 bytes each, in registers.
//
// Tiles of the first factor hold 16 rows of 32 values; tiles of the second 32 rows of 16 values,
// with pairs of rows interleaved: line i has rows 2 i and 2 i + 1.
#pragma once

// Whether this compiler makes them. Code that uses them stands between FARSTEP_AMX_CODE and
// FARSTEP_AMX_CODE_END, and may run only where has_amx().
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FARSTEP_AMX_COMPILED 1
#define FARSTEP_AMX_CODE      \
  _Pragma("GCC push_options") \
      _Pragma("GCC target(\"avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16\")")
#define FARSTEP_AMX_CODE_END _Pragma("GCC pop_options")
#else
#define FARSTEP_AMX_COMPILED 0
#endif

namespace farstep {

// Whether this processor has them, and the kernel lets this process use them. Thread-safe.
bool has_amx();

// What their functions do where this compiler does not make them: throws InternalError.
[[noreturn]] void lack_amx();

}  // namespace farstep
