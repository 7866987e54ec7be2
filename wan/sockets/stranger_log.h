// Warnings about strangers: anybody who reaches an open port can cause them, with any
// content and as often as the network allows. So a kind of warning has one line in ten seconds, and
// a line has at most 300 characters of printable ASCII.
//
// One thread at a time uses it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/clock.h"

namespace farstep::wan {

class StrangerLog {
 public:
  // `who` is the part that logs. `clock` must outlive the log.
  StrangerLog(std::string who, const Clock& clock) : who_(std::move(who)), clock_(clock) {}

  // Logs "WHO: KIND: TEXT", or counts it if a line of the kind is less than ten seconds
  // old. `kind` is a constant of the program; `text` may come from a stranger.
  void warn(std::string_view kind, std::string_view text);
  // Logs how many warnings of each kind were counted, once ten seconds after the kind's last line.
  void tick();

 private:
  struct Kind {
    double logged_seconds = 0;
    int64_t held_back = 0;
  };

  const std::string who_;
  const Clock& clock_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace farstep::wan
