// Compiles code for one x86 instruction set in a program that also runs on other machines.
//
// Code between FARSTEP_..._CODE and FARSTEP_CODE_END is compiled for that set and may run only if
// has_instructions() of it. Other headers are included before, because their inline functions must
// stay code for every machine. All sets include prefetches for writing (prfchw); the few AVX2
// processors without them ignore them.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define FARSTEP_X86_CODE 1
#define FARSTEP_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define FARSTEP_CODE_FOR(set) \
  FARSTEP_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define FARSTEP_CODE_END FARSTEP_PRAGMA(clang attribute pop)
#else
#define FARSTEP_CODE_FOR(set) FARSTEP_PRAGMA(GCC push_options) FARSTEP_PRAGMA(GCC target(set))
#define FARSTEP_CODE_END FARSTEP_PRAGMA(GCC pop_options)
#endif
#define FARSTEP_AVX2_CODE FARSTEP_CODE_FOR("avx2,fma,prfchw")
#define FARSTEP_AVX512_CODE FARSTEP_CODE_FOR("avx2,fma,prfchw,avx512f,avx512bw,avx512dq,avx512vl")
#define FARSTEP_AVX512_BF16_CODE \
  FARSTEP_CODE_FOR("avx2,fma,prfchw,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#define FARSTEP_AMX_CODE \
  FARSTEP_CODE_FOR(      \
      "avx2,fma,prfchw,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")
#else
#define FARSTEP_X86_CODE 0
#endif
