#include "trainer/series/csv.h"

#include <fmt/format.h>

namespace farstep {

namespace {

// A name is text of others. A cell that begins like a formula would be one in a spreadsheet.
std::string cell(const std::string& text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  const auto shown = is_formula ? "'" + text : text;
  if (shown.find_first_of(",\"\n\r") == shown.npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_text(std::span<const Series> series) {
  std::string text = "owner,series,place,time,value\n";
  for (const auto& one : series) {
    const auto names = cell(one.owner) + "," + cell(one.name);
    for (const auto& point : one.points) {
      text += fmt::format("{},{},{},{}\n", names, point.place, point.time, point.value);
    }
  }
  return text;
}

}  // namespace farstep
