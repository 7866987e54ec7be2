// Cuts the flat parameter vector into the ranges that sites reduce, and other ranges.
//
// Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

// How a range is cut among the sites: kBytes by cut_by_shares(), kLayer by cut_at_borders().
enum class PartitionRule { kBytes, kLayer };
inline std::span<const std::string_view> enum_names(PartitionRule) {
  static constexpr std::array<std::string_view, 2> kNames{"bytes", "layer"};
  return kNames;
}

// Elements [begin, end) of a flat vector.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("begin", begin, "its first element", required(at_least(0)));
    visit("end", end, "the one after its last", required(at_least(0)));
  }
  bool operator==(const Range&) const = default;
};

// What one site reduces.
struct Partition {
  std::vector<Range> received = {};  // it has all sites' values of it already
  std::vector<Range> awaited = {};   // they are to be sent

  // Returns all its ranges, in the order in which they are reduced.
  std::vector<Range> ranges() const;
  // Returns how many values they have.
  int64_t size() const;
  bool operator==(const Partition&) const = default;
};

// Returns partitions of one range each, of which nothing has been received.
std::vector<Partition> partitions_of(const std::vector<Range>& ranges);

// Returns the range's elements of a span or vector. Throws InternalError if it lacks some.
template <typename Values>
auto part(Values&& values, const Range& range) {
  FARSTEP_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= std::ssize(values),
                "elements {} to {} of {}", range.begin, range.end, std::ssize(values));
  return std::span(values).subspan(static_cast<std::size_t>(range.begin),
                                   static_cast<std::size_t>(range.size()));
}

// Returns part `index` of `num_parts` of n elements: [floor(index n / N), floor((index+1) n / N)).
// Parts have no gaps, and their sizes differ by at most one.
Range equal_part(int64_t n, int index, int num_parts);

// Cuts a range into one part for each share, without gaps, in proportion to the shares. Borders
// between parts are multiples of `block` from the range's begin. With blocks of 1, equal shares
// give equal_part(). A share of 0 gives an empty part. Throws InternalError for a negative share,
// or if all are 0.
std::vector<Range> cut_by_shares(const Range& range, std::span<const double> shares,
                                 int64_t block = 1);

// Does the same with blocks of 1, and moves every border to the nearest of `borders` (ascending),
// so that no tensor is cut in two. The ends of the range stay.
std::vector<Range> cut_at_borders(const Range& range, std::span<const double> shares,
                                  std::span<const int64_t> borders);

// Returns why shares of others cannot be those of so many sites, for a message; empty if they can.
std::string fault_of_shares(std::span<const double> shares, std::size_t num_sites);

// Returns shares of a direct exchange that minimise the longest time of an uplink: site i sends 1 +
// (N - 2) share_i times the model. Two sites get equal shares, because each uplink carries the same
// for all shares. Shares sum to 1. Throws InternalError unless all rates are finite and above 0.
std::vector<double> bandwidth_shares(std::span<const double> uplink_bits_per_second);

}  // namespace farstep::outer_optimizer
