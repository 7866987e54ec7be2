#include "trainer/data/pieces/neighbours.h"

#include "trainer/data/text/utf8.h"

namespace farstep {

void Neighbours::add(std::string_view piece) {
  char32_t before = character_at(piece, 0);
  for (auto place = character_bytes(piece[0]); place < piece.size();) {
    const char32_t after = character_at(piece, place);
    if (before < kAscii && after < kAscii) {
      ascii_.set(before * kAscii + after);
    } else {
      others_.set(static_cast<int32_t>(before), static_cast<int32_t>(after), {});
    }
    place += character_bytes(piece[place]);
    before = after;
  }
}

std::size_t Neighbours::end_of_part(std::string_view text, std::size_t begin) const {
  auto end = begin + character_bytes(text[begin]);
  char32_t before = character_at(text, begin);
  while (end < text.size()) {
    const char32_t after = character_at(text, end);
    if (!may_join(before, after)) break;
    end += character_bytes(text[end]);
    before = after;
  }
  return end;
}

}  // namespace farstep
