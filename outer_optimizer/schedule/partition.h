// Which part of the flat parameter vector one site reduces for all.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

// Elements [begin, end) of a flat vector.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// The range's elements of a span or vector. Throws InternalError if it does not have them all.
template <typename Values>
auto part(Values&& values, const Range& range) {
  FARSTEP_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= std::ssize(values),
                "elements {} to {} of {}", range.begin, range.end, std::ssize(values));
  return std::span(values).subspan(static_cast<std::size_t>(range.begin),
                                   static_cast<std::size_t>(range.size()));
}

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

// Shares of a direct exchange for which no site's uplink is busy longer than it must be: site i
// sends 1 + (N - 2) share_i times the model. They are equal for two sites, whose uplinks carry the
// same whatever the shares, and sum to 1. Throws InternalError unless all rates are above 0 and
// finite.
std::vector<double> bandwidth_shares(std::span<const double> uplink_bits_per_second);

}  // namespace farstep
