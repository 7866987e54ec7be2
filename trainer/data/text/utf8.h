// UTF-8: what of a text is valid, and its characters.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace farstep {

// Returns the bytes at the beginning of `text` that are valid UTF-8: text.size() if all are.
std::size_t valid_utf8_bytes(std::string_view text);

// Returns `text` with U+FFFD in place of every invalid part, as browsers and Rust replace it.
std::string with_replaced_bytes(std::string_view text);

// Returns `text` without the byte-order mark that it may begin with.
constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

// Returns how many bytes the character has that begins with the byte `lead`. The text is valid.
constexpr std::size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Returns the character that begins at `place` of a valid text.
char32_t character_at(std::string_view text, std::size_t place);

// Returns where the character before `place` begins; `place` is above 0 and begins a character.
std::size_t character_before(std::string_view text, std::size_t place);

// Appends the character's bytes.
void append_character(std::string& text, char32_t character);

}  // namespace farstep
