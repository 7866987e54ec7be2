// A terminal obeys control characters, and a cut within a character of UTF-8 would leave bytes that
// are no text.
#include "trainer/base/system/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/system/utf8_character.h"

namespace farstep {

namespace {

constexpr std::string_view kCut = "...";

std::string as_hex(std::string_view bytes) {
  std::string shown;
  for (const char byte : bytes) {
    shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return shown;
}

// Whether the character may change what stands around it.
bool is_control(std::string_view character) {
  using Range = std::pair<std::string_view, std::string_view>;
  // Controls, marks of direction, ends of lines and paragraphs, and what isolates or embeds. In
  // UTF-8 characters have the order of their numbers.
  static constexpr std::array<Range, 8> kControls{{{{"\0", 1}, "\x1f"},
                                                   {"\x7f", "\xc2\x9f"},
                                                   {"\u061c", "\u061c"},
                                                   {"\u200e", "\u200f"},
                                                   {"\u2028", "\u202e"},
                                                   {"\u2066", "\u2069"},
                                                   {"\ufeff", "\ufeff"},
                                                   {"\U000e0001", "\U000e007f"}}};
  return std::ranges::any_of(kControls, [character](const Range& range) {
    return range.first <= character && character <= range.second;
  });
}

// Calls `take` with each character or invalid part, and whether it shows as it is; until it returns
// false.
template <typename Take>
void each_character(std::string_view text, Take take) {
  while (!text.empty()) {
    const auto [bytes, is_valid] = first_utf8_character(text);
    const auto character = text.substr(0, bytes);
    if (!take(character, is_valid && !is_control(character))) return;
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::string one_line(std::string_view text, std::size_t most) {
  std::string shown;
  std::size_t last_fit = 0;  // where the mark of a cut fits behind
  bool is_cut = false;
  each_character(text, [&](std::string_view character, bool shows) {
    if (shown.size() + kCut.size() <= most) last_fit = shown.size();
    const auto next = shows               ? std::string(character)
                      : character == "\n" ? std::string(" ")
                                          : as_hex(character);
    is_cut = next.size() > most - shown.size();
    if (!is_cut) shown += next;
    return !is_cut;
  });
  if (is_cut) shown.replace(last_fit, shown.npos, kCut.substr(0, most));
  return shown;
}

std::string safe_lines(std::string_view text, std::string_view indent) {
  std::string shown;
  while (true) {
    const auto end = text.find('\n');
    shown += one_line(text.substr(0, end));
    if (end == text.npos) return shown;
    shown.append("\n").append(indent);
    text.remove_prefix(end + 1);
  }
}

bool is_one_line(std::string_view text) {
  bool all_show = true;
  each_character(text,
                 [&](std::string_view /*character*/, bool shows) { return all_show = shows; });
  return all_show;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (const char character : text) {
    const bool is_plain = character >= ' ' && character <= '~';
    const auto next = is_plain ? std::string(1, character) : as_hex({&character, 1});
    if (shown.size() + next.size() > most) return shown.substr(0, most - kCut.size()).append(kCut);
    shown += next;
  }
  return shown;
}

}  // namespace farstep
