// Examples of one kind, to train on or to validate with, by their numbers 0 to size() - 1.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/batch_view.h"
#include "trainer/data/mixture.h"

namespace farstep {

// An example as training meets it: which one, and in which pass over all of its source.
struct Draw {
  int64_t number = 0;
  int64_t epoch = 0;

  bool operator==(const Draw&) const = default;
};

class Examples {
 public:
  virtual ~Examples() = default;

  // Throws DataError if there are none.
  virtual int64_t size() const = 0;
  // Returns the sources, whose examples follow each other in the numbers. By default there is one.
  // Throws DataError as size() does.
  virtual std::vector<SourceShare> sources() const { return {{.size = size()}}; }
  // Returns the examples with these numbers, in that order. Throws DataError if they cannot be
  // read.
  virtual Batch read(std::span<const int64_t> numbers) const = 0;
  // Returns the examples as training meets them. By default they are the same in every epoch.
  virtual Batch draw(std::span<const Draw> draws) const {
    std::vector<int64_t> numbers;
    for (const auto& one : draws) numbers.push_back(one.number);
    return read(numbers);
  }
};

}  // namespace farstep
