// The first two bytes rule out nearly every place of a text: literals begin with "<|" or the like.
#include "trainer/data/pieces/literal_set.h"

#include <algorithm>

namespace farstep {

namespace {

std::size_t byte_at(std::string_view text, std::size_t place) {
  return static_cast<unsigned char>(text[place]);
}

}  // namespace

void LiteralSet::add(std::string_view literal, int32_t value) {
  auto& same = by_first_byte_[byte_at(literal, 0)];
  const auto place = std::upper_bound(
      same.begin(), same.end(), literal.size(),
      [](std::size_t size, const Literal& other) { return size > other.text.size(); });
  same.insert(place, {std::string(literal), value});
  ++size_;
  if (literal.size() > 1) {
    first_bytes_.set(byte_at(literal, 0) << 8 | byte_at(literal, 1));
    return;
  }
  for (std::size_t second = 0; second < 256; ++second) {
    first_bytes_.set(byte_at(literal, 0) << 8 | second);
  }
}

std::optional<LiteralSet::Match> LiteralSet::at(std::string_view text, std::size_t place) const {
  const auto rest = text.substr(place);
  if (rest.size() > 1 && !first_bytes_[byte_at(rest, 0) << 8 | byte_at(rest, 1)]) {
    return std::nullopt;
  }
  for (const auto& literal : by_first_byte_[byte_at(rest, 0)]) {
    if (rest.starts_with(literal.text)) {
      return Match{place, place + literal.text.size(), literal.value};
    }
  }
  return std::nullopt;
}

std::optional<LiteralSet::Match> LiteralSet::next(std::string_view text, std::size_t from) const {
  if (empty()) return std::nullopt;
  for (std::size_t place = from; place < text.size(); ++place) {
    if (const auto match = at(text, place)) return match;
  }
  return std::nullopt;
}

}  // namespace farstep
