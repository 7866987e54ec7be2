// Text that looks like prose to a tokenizer, made from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace farstep {

// About `bytes` bytes: words, digits, line ends and blank lines; the same for the same seed.
inline std::string sample_text(std::size_t bytes, uint32_t seed) {
  constexpr std::string_view kSyllables[] = {"ka", "mo", "ri", "ten", "sol", "ver", "an", "du"};
  uint32_t state = seed * 2654435761u + 1;
  const auto draw = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  std::string text;
  while (text.size() < bytes) {
    for (uint32_t i = 0; i <= draw(3); ++i) text += kSyllables[draw(8)];
    if (draw(20) == 0) text += ", " + std::to_string(draw(1000));
    text += draw(80) == 0 ? ".\n\n" : draw(10) == 0 ? "\n" : " ";
  }
  return text + "end.\n";
}

}  // namespace farstep
