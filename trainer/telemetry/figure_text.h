// How single figures read for a person: counts, bytes, losses, names.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/telemetry/event.h"

namespace farstep {

// What a person calls a cause: "waiting for peers".
std::string_view label_of(SpanCause cause);

// 1234567 -> "1,234,567".
std::string count_text(int64_t count);
// 214983680 -> "215.0M".
std::string short_count_text(double count);
// 1234567 -> "1.23 MB", in powers of 1000.
std::string bytes_text(int64_t bytes);
// "7.624"; "-" if there is none.
std::string loss_text(std::optional<double> loss);

// A site's name with room for 12 letters: the middle of a longer one is left out.
std::string short_name(const std::string& site);

}  // namespace farstep
