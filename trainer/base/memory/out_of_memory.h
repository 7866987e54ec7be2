// Recognises errors caused by a lack of memory. Thread-safe.
#pragma once

#include <exception>

#include "trainer/base/error.h"

namespace farstep {

// A device's memory is too small for the configuration. The message says what would fit.
class NoRoomError : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// Returns true for NoRoomError, std::bad_alloc, and failed allocations of LibTorch and CUDA, which
// it recognises by their messages.
bool is_out_of_memory(const std::exception& error);

}  // namespace farstep
