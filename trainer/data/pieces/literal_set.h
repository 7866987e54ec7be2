// Fixed texts, found in other texts: the leftmost one, and of those that begin there the longest.
//
// A const LiteralSet is thread-safe.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

class LiteralSet {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
    int32_t value = 0;
  };

  // Adds a text that is not empty; of equal texts the first one counts.
  void add(std::string_view literal, int32_t value);
  bool empty() const { return size_ == 0; }

  // Returns the longest literal that begins at `place`.
  std::optional<Match> at(std::string_view text, std::size_t place) const;
  // Returns the first match that begins at `from` or later.
  std::optional<Match> next(std::string_view text, std::size_t from) const;

 private:
  struct Literal {
    std::string text;
    int32_t value = 0;
  };

  // Of each first byte, the longest first.
  std::array<std::vector<Literal>, 256> by_first_byte_;
  std::bitset<1 << 16> first_bytes_;  // the two first bytes of the literals
  std::size_t size_ = 0;
};

}  // namespace farstep
