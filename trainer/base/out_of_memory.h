// Whether an error is a lack of memory. Thread-safe.
#pragma once

#include <exception>

namespace farstep {

// True for std::bad_alloc, and for what LibTorch and CUDA throw when an allocation fails, by the
// words that they say it with.
bool is_out_of_memory(const std::exception& error);

}  // namespace farstep
