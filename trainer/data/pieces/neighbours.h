// Which characters are neighbours in some piece. A text falls apart between all others, whatever
// the pieces' scores or merges are.
//
// A const Neighbours is thread-safe.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

#include "trainer/data/pieces/pair_table.h"

namespace farstep {

class Neighbours {
 public:
  // Adds those of a piece, valid UTF-8 and not empty.
  void add(std::string_view piece);
  // Whether one piece may contain these neighbours.
  bool may_join(char32_t before, char32_t after) const {
    if (before < kAscii && after < kAscii) return ascii_[before * kAscii + after];
    return others_.find(static_cast<int32_t>(before), static_cast<int32_t>(after)) != nullptr;
  }
  // Returns where the part ends that begins at `begin` of a valid text.
  std::size_t end_of_part(std::string_view text, std::size_t begin) const;

 private:
  static constexpr char32_t kAscii = 0x80;

  PairTable others_;
  std::bitset<kAscii * kAscii> ascii_;
};

}  // namespace farstep
