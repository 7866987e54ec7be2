// The first character of a text of UTF-8, or the part there that is none. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace farstep {

struct Utf8Character {
  std::size_t bytes;  // of the character, or of the invalid part
  bool is_valid;
};

// `text` is not empty. The second byte's limits refuse overlong forms, surrogates, and what is
// beyond U+10FFFF. An invalid part ends before the first byte that cannot go on with a character.
constexpr Utf8Character first_utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (text.size() < 2 || byte(1) < least || byte(1) > most) return {1, false};
  for (std::size_t place = 2; place < bytes; ++place) {
    if (place >= text.size() || (byte(place) & 0xc0) != 0x80) return {place, false};
  }
  return {bytes, true};
}

}  // namespace farstep
