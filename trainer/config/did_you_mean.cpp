#include "trainer/config/did_you_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace farstep {

namespace {

// Returns the Levenshtein distance.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  // Dynamic programming, row by row: only the row before is needed.
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above_left = diagonal;
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, above_left + (a[i - 1] == b[j - 1] ? 0 : 1)});
    }
  }
  return row[b.size()];
}

// Whether `typed` is `name` with letters left out, but not its first ones: "peak_lr".
bool is_shortened(std::string_view typed, std::string_view name) {
  constexpr std::size_t kFirst = 3;
  if (typed.size() < kFirst || typed.substr(0, kFirst) != name.substr(0, kFirst)) return false;
  std::size_t found = 0;
  for (const char c : name) found += found < typed.size() && typed[found] == c ? 1 : 0;
  return found == typed.size();
}

}  // namespace

std::string did_you_mean(const std::string& typed, std::span<const std::string> known) {
  // No typing error makes a name so long, and the comparison would take minutes for one of
  // megabytes.
  constexpr std::size_t kLongestName = 64;
  if (typed.size() > kLongestName || known.empty()) return "";
  const auto shortened =
      std::ranges::find_if(known, [&](const auto& other) { return is_shortened(typed, other); });
  const auto nearest = std::ranges::min_element(
      known, {}, [&](const auto& other) { return edit_distance(typed, other); });
  // A third of the letters: more would propose names that only have the same length.
  const bool is_near = edit_distance(typed, *nearest) <= 1 + nearest->size() / 3;
  if (!is_near && shortened == known.end()) return "";
  return fmt::format("; did you mean '{}'?", is_near ? *nearest : *shortened);
}

}  // namespace farstep
