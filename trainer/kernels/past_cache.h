// Large results that nothing reads soon, kept from driving out of the processor's caches what is
// read soon.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace farstep {

// Copies `size` values, which do not overlap, straight to memory.
void copy_past_cache(const float* from, int64_t size, float* to);

}  // namespace farstep
