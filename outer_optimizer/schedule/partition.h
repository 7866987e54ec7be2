// Which part of the flat parameter vector one site reduces for all.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// The range cut in one part a share, without gaps, in proportion to the shares: equal_part() of
// equal ones, an empty part for a share of 0. Throws InternalError unless there is a share above 0
// and none below.
std::vector<Range> cut_by_shares(const Range& range, std::span<const double> shares);

// The same with every border moved to the nearest of `borders` (ascending), so that no tensor is
// cut in two; the ends of the range stay.
std::vector<Range> cut_at_borders(const Range& range, std::span<const double> shares,
                                  std::span<const int64_t> borders);

}  // namespace farstep
