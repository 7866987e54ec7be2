#include "trainer/telemetry/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace farstep {

namespace {

constexpr std::array<std::string_view, kSpanCauses> kCauseLabels = {
    "waiting for peers", "WAN transfer", "outer step", "data",
    "checkpoint",        "evaluation",   "recovery",   "serving"};

}  // namespace

std::string_view label_of(SpanCause cause) {
  return kCauseLabels[static_cast<std::size_t>(cause)];
}

std::string count_text(int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t first_digit = count < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first_digit + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string short_count_text(double count) {
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f}M", count / 1e6);
  // Four digits are still read at a glance, so a suffix begins with the fifth.
  if (count >= 1e4) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string bytes_text(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 rounds to 1000, which belongs to the next unit.
  for (; amount >= 999.5 && unit + 1 < kUnits.size(); ++unit) amount /= 1000;
  const int digits = unit == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", amount, digits, kUnits[unit]);
}

std::string percent_text(double fraction) {
  return fmt::format("{:.1f} %", 100 * fraction);
}

std::string loss_text(std::optional<double> loss) {
  return loss ? fmt::format("{:.3f}", *loss) : "-";
}

std::string accuracy_text(std::optional<double> accuracy) {
  return accuracy ? fmt::format("{:.2f} %", 100 * *accuracy) : "-";
}

// The second unit stays while it is at least a percent or so of the whole.
std::string duration_text(double seconds) {
  if (seconds < 1e-4) return "0 s";  // what rounding leaves of a difference
  if (seconds < 99.95) return fmt::format("{:.3g} s", seconds);
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const auto in_two = [&](double unit, const char* name, double part, const char* part_name) {
    const double parts = std::round(seconds / part);
    const double whole = std::floor(parts * part / unit);
    const double rest = parts - whole * unit / part;
    const auto first = fmt::format("{:.0f} {}", whole, name);
    return rest > 0 ? fmt::format("{} {:.0f} {}", first, rest, part_name) : first;
  };
  // What rounds to the next unit belongs there: no "60 min".
  if (seconds < 599.5) return in_two(kMinute, "min", 1, "s");
  if (seconds < kHour - kMinute / 2) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay - kMinute / 2) return in_two(kHour, "h", kMinute, "min");
  if (seconds < 100 * kDay - kHour / 2) return in_two(kDay, "days", kHour, "h");
  return fmt::format("{:.0f} days", seconds / kDay);
}

std::string time_left_text(std::optional<double> seconds) {
  if (!seconds) return "";
  const auto whole = static_cast<int64_t>(std::lround(std::min(*seconds, 359'999.0)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string short_name(const std::string& site) {
  // The end stays, because sites that are numbered differ there.
  return site.size() <= 12 ? site : site.substr(0, 7) + ".." + site.substr(site.size() - 3);
}

}  // namespace farstep
