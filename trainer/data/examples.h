// Examples of one kind, to train on or to validate with, by their numbers 0 to size() - 1.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/batch_view.h"

namespace farstep {

class Examples {
 public:
  virtual ~Examples() = default;

  // Throws DataError if there are none.
  virtual int64_t size() const = 0;
  // Returns the examples with these numbers, in that order. Throws DataError if they cannot be
  // read.
  virtual Batch read(std::span<const int64_t> numbers) const = 0;
};

}  // namespace farstep
