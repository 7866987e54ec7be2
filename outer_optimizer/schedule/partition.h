// Which part of the flat parameter vector one site reduces for all.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

namespace farstep {

// Elements [begin, end) of a flat vector.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `num_parts` of n elements: [floor(index n / N), floor((index+1) n / N)). The
// parts follow each other without gap, and their sizes differ by one at most.
Range equal_part(int64_t n, int index, int num_parts);

}  // namespace farstep
