// Recognises errors caused by a lack of memory. Thread-safe.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "trainer/base/error.h"

namespace farstep {

// A device's memory is too small for a micro-batch. The message says what would fit.
class NoRoomError : public ConfigError {
 public:
  NoRoomError(const std::string& message, int64_t largest_micro_batch)
      : ConfigError(message), largest_micro_batch_(largest_micro_batch) {}
  // Returns the most examples that fit, less than there were; 0 if not even one does.
  int64_t largest_micro_batch() const { return largest_micro_batch_; }

 private:
  int64_t largest_micro_batch_;
};

// Returns true for NoRoomError, std::bad_alloc, and failed allocations of LibTorch and CUDA, which
// it recognises by their messages.
bool is_out_of_memory(const std::exception& error);

}  // namespace farstep
