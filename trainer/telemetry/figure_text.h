// Formats single figures for people: counts, bytes, losses, names.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/telemetry/event.h"

namespace farstep {

// Returns a cause in words: "waiting for peers".
std::string_view label_of(SpanCause cause);

// 1234567 -> "1,234,567".
std::string count_text(int64_t count);
// 214983680 -> "215.0M".
std::string short_count_text(double count);
// 1234567 -> "1.23 MB", in powers of 1000.
std::string bytes_text(int64_t bytes);
// 0.0234 -> "2.3 %".
std::string percent_text(double fraction);
// "7.624"; "-" if there is no loss.
std::string loss_text(std::optional<double> loss);
// 0.9234 -> "92.34 %"; "-" if there is no accuracy.
std::string accuracy_text(std::optional<double> accuracy);

// A duration as people say it, in one or two units: "0.239 s", "34 min", "10 h 34 min", "3 days 4
// h".
std::string duration_text(double seconds);
// "1:05" or "2:03:04"; empty if unknown.
std::string time_left_text(std::optional<double> seconds);

// Returns a site's name in at most 12 letters, without the middle of a longer one.
std::string short_name(const std::string& site);

}  // namespace farstep
