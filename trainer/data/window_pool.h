// The sequence numbers that are next in the order of a run's data.
//
// Sequence n is window n mod W of the epoch n / W. Each number is taken once, unless it is given
// back. Numbers that were given back come first, in ascending order; then those that nobody has
// taken.
//
// A value; thread-safe as such.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/fields.h"

namespace farstep {

// More sequences than any run has. Up to here a double, and so JSON of others, has each number.
inline constexpr int64_t kMostSequences = int64_t{1} << 53;

// The numbers from `begin` to before `end`.
struct SequenceRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("begin", begin, "first sequence", required(in_range(0, kMostSequences)));
    visit("end", end, "the one after the last", required(in_range(0, kMostSequences)));
  }
  bool operator==(const SequenceRange&) const = default;
};

class WindowPool {
 public:
  // Makes a pool of all numbers from `next` on.
  explicit WindowPool(int64_t next = 0) : next_(next) {}

  // Returns the k-th number that is next, from 0.
  int64_t at(int64_t k) const;
  // Takes the next `count` numbers. Returns them as ranges, in their order.
  std::vector<SequenceRange> take(int64_t count);
  // Gives back numbers that were taken. Throws InternalError if one of them is in the pool.
  void give_back(const SequenceRange& range);
  // Returns whether all numbers of a range are taken.
  bool has_taken(const SequenceRange& range) const;

  // Returns the first of the numbers from which on none is taken.
  int64_t next() const { return next_; }
  // Returns those before it that are not taken either: ascending, none of them empty, and each
  // apart from the others and from next().
  const std::vector<SequenceRange>& returned() const { return returned_; }
  bool operator==(const WindowPool&) const = default;

 private:
  int64_t next_;
  std::vector<SequenceRange> returned_;
};

}  // namespace farstep
