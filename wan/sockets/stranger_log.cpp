// The first warning of a kind is logged at once. Those that follow within the quiet time are only
// counted, so a flood of any size writes one line in that time.
#include "wan/sockets/stranger_log.h"

#include <spdlog/spdlog.h>

#include "trainer/base/system/printable.h"

namespace farstep::wan {

namespace {

// Six lines a minute are readable, and a day of them is below 3 MB.
constexpr double kQuietSeconds = 10;
constexpr std::size_t kMostCharacters = 300;

}  // namespace

void StrangerLog::warn(std::string_view kind, std::string_view text) {
  // Before the entry is looked up: a kind that was quiet long enough counts as new.
  tick();
  const auto [found, is_new] = kinds_.try_emplace(std::string(kind));
  if (!is_new) {
    ++found->second.held_back;
    return;
  }
  found->second.logged_seconds = clock_.now_seconds();
  spdlog::warn("{}: {}: {}", who_, kind, printable(text, kMostCharacters));
}

// A kind that was quiet for long enough is forgotten. So its next warning is logged at once.
void StrangerLog::tick() {
  const double now_seconds = clock_.now_seconds();
  for (auto entry = kinds_.begin(); entry != kinds_.end();) {
    auto& [name, kind] = *entry;
    if (now_seconds < kind.logged_seconds + kQuietSeconds) {
      ++entry;
    } else if (kind.held_back == 0) {
      entry = kinds_.erase(entry);
    } else {
      spdlog::warn("{}: {}: {} more times in {:.0f} s", who_, name, kind.held_back,
                   now_seconds - kind.logged_seconds);
      kind = {.logged_seconds = now_seconds};
      ++entry;
    }
  }
}

}  // namespace farstep::wan
