// ASCII only: a terminal obeys control characters, and a cut within a character of UTF-8 would
// leave bytes that are no text.
#include "trainer/base/system/printable.h"

#include <fmt/format.h>

namespace farstep {

std::string printable(std::string_view text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  std::string shown;
  for (const char character : text) {
    const bool is_plain = character >= ' ' && character <= '~';
    const auto next = is_plain ? std::string(1, character)
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(character));
    if (shown.size() + next.size() > most) return shown.substr(0, most - kCut.size()).append(kCut);
    shown += next;
  }
  return shown;
}

}  // namespace farstep
