#include "trainer/data/text/utf8.h"

#include <cstdint>
#include <cstring>

#include "trainer/base/system/utf8_character.h"

namespace farstep {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t place = 0;
  while (place < text.size()) {
    // Eight bytes at a time, because most text is ASCII.
    uint64_t word = 0;
    if (text.size() - place >= sizeof(word)) {
      std::memcpy(&word, text.data() + place, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        place += sizeof(word);
        continue;
      }
    }
    const auto character = first_utf8_character(text.substr(place));
    if (!character.is_valid) return place;
    place += character.bytes;
  }
  return place;
}

std::string with_replaced_bytes(std::string_view text) {
  std::string replaced;
  while (!text.empty()) {
    const auto valid = valid_utf8_bytes(text);
    replaced += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    replaced += kReplacement;
    text.remove_prefix(first_utf8_character(text).bytes);
  }
  return replaced;
}

char32_t character_at(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[place + i]));
  };
  const auto tail = [&](std::size_t i) { return byte(i) & 0x3f; };
  switch (character_bytes(text[place])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1f) << 6 | tail(1);
    case 3:
      return (byte(0) & 0x0f) << 12 | tail(1) << 6 | tail(2);
    default:
      return (byte(0) & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
  }
}

std::size_t character_before(std::string_view text, std::size_t place) {
  do {
    --place;
  } while (place > 0 && (static_cast<unsigned char>(text[place]) & 0xc0) == 0x80);
  return place;
}

void append_character(std::string& text, char32_t character) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xc0 | character >> 6);
    add(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    add(0xe0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3f));
    add(0x80 | (character & 0x3f));
  } else {
    add(0xf0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3f));
    add(0x80 | (character >> 6 & 0x3f));
    add(0x80 | (character & 0x3f));
  }
}

}  // namespace farstep
