#include "trainer/doctor/clocks.h"

#include <sys/timex.h>

#include <cmath>

namespace farstep {

namespace {

constexpr const char* kRemedy = "`timedatectl set-ntp true`, or another NTP client, sets it";
// Beyond NTP's errors, but harmless to a run.
constexpr double kNotableSeconds = 1;
// A machine with such a clock has none that is set. Its keys may count as expired, or as not yet
// valid.
constexpr double kWrongSeconds = 60;

}  // namespace

std::optional<SystemClock> system_clock() {
  timex state{};  // modes 0: it only reads
  const int result = ::adjtimex(&state);
  if (result < 0) return std::nullopt;
  return SystemClock{.is_synchronised = result != TIME_ERROR && (state.status & STA_UNSYNC) == 0,
                     .most_error_seconds = 1e-6 * static_cast<double>(state.maxerror)};
}

Finding clock_finding(const std::optional<SystemClock>& clock) {
  constexpr const char* kSubject = "clock";
  if (!clock) return {kSubject, Grade::kLater, "the system does not say how right it is", 0};
  if (!clock->is_synchronised) {
    return warning(kSubject, fmt::format("the system's clock is not synchronised: {}", kRemedy));
  }
  return ok(kSubject, fmt::format("the system's clock is synchronised, within {:.3f} s",
                                  clock->most_error_seconds));
}

Finding clock_difference_finding(const std::string& peer, double ahead_seconds) {
  const std::string subject = "clock";
  const auto text = fmt::format("that of {} is {:.2f} s {} this one", peer, std::abs(ahead_seconds),
                                ahead_seconds >= 0 ? "ahead of" : "behind");
  const auto remedy =
      fmt::format(": at the site whose clock is wrong, {}; records and keys count on it", kRemedy);
  if (std::abs(ahead_seconds) > kWrongSeconds) {
    return fault(subject, ErrorKind::kConfig, text + remedy);
  }
  if (std::abs(ahead_seconds) > kNotableSeconds) return warning(subject, text + remedy);
  return ok(subject, text);
}

}  // namespace farstep
