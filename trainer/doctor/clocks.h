// Whether this machine's clock is right: what the system says of it, and how far a peer's differs.
// Keys are valid for a time, and logs of two sites are read side by side. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "trainer/doctor/finding.h"

namespace farstep {

// What the kernel knows of its clock.
struct SystemClock {
  bool is_synchronised = false;  // by NTP or the like
  double most_error_seconds = 0;
};

// Asks the kernel; nullopt if it does not say.
std::optional<SystemClock> system_clock();

Finding clock_finding(const std::optional<SystemClock>& clock);

// `ahead_seconds`: by how much the peer's clock is ahead of this one's.
Finding clock_difference_finding(const std::string& peer, double ahead_seconds);

}  // namespace farstep
