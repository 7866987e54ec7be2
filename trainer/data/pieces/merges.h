// Byte-pair encoding of one word: merges neighbours by rank until no pair is left that has a merge.
//
// A const Merges is thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/pieces/pair_table.h"

namespace farstep {

class Merges {
 public:
  // Sets what two neighbours become. Merges of a lower rank come first; of equal ranks, the one
  // further left.
  void set(int32_t left, int32_t right, PairTable::Merge merge) { table_.set(left, right, merge); }

  // Replaces the symbols of a word, each 0 or above, by what their merges make. Takes n log n steps
  // for n symbols.
  void apply(std::vector<int32_t>& symbols) const;

 private:
  void apply_to_short(std::vector<int32_t>& symbols) const;
  void apply_to_long(std::vector<int32_t>& symbols) const;

  PairTable table_;
};

}  // namespace farstep
