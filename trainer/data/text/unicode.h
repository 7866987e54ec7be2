// Kinds of characters, and Unicode's normal forms. No other folder sees utf8proc.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace farstep {

// Whether the character is a letter (category L).
bool is_letter(char32_t character);
// Whether it has Unicode's property White_Space.
bool is_white_space(char32_t character);
// Whether it belongs to words, as \w has it: letters, marks, decimal digits, connectors.
bool is_word_character(char32_t character);

// Returns where the grapheme ends that begins at `begin` of a valid text: a character with its
// marks, or several that are shown as one. `begin` is below text.size(), and begins a grapheme.
std::size_t grapheme_end(std::string_view text, std::size_t begin);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

inline std::span<const std::string_view> enum_names(NormalForm) {
  static constexpr std::string_view kNames[] = {"NFC", "NFD", "NFKC", "NFKD"};
  return kNames;
}

// Returns the valid UTF-8 text in a normal form.
std::string normalized(std::string_view text, NormalForm form);

}  // namespace farstep
