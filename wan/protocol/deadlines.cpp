// Each rule is an order of events: a shorter wait must end, and name its cause, before a longer one
// gives up. So every message says which two values contradict each other, and a value that works.
#include "wan/protocol/deadlines.h"

#include "trainer/config/json_fields.h"

namespace farstep::wan {

void Deadlines::validate(const std::string& file) const {
  const JsonPath path{file, "deadlines"};
  // Two heartbeats may be lost with a connection that is made again.
  if (lost_after_seconds < 3 * heartbeat_seconds) {
    path.member("lost_after_seconds")
        .fail(fmt::format("is {}; must be at least 3 heartbeats of {} s, or a living site is taken "
                          "for lost: set at least {}, or lower heartbeat_seconds",
                          lost_after_seconds, heartbeat_seconds, 3 * heartbeat_seconds));
  }
  if (coordinator_lost_after_seconds < lost_after_seconds) {
    path.member("coordinator_lost_after_seconds")
        .fail(fmt::format(
            "is {}; must be at least lost_after_seconds, {}: set it too, for example to "
            "{}",
            coordinator_lost_after_seconds, lost_after_seconds, 10 * lost_after_seconds));
  }
  if (transfer_stall_seconds <= lost_after_seconds) {
    path.member("transfer_stall_seconds")
        .fail(fmt::format("is {}; must be above lost_after_seconds, {}, so that a lost site is "
                          "named before its transfer is given up: set it too, for example to {}",
                          transfer_stall_seconds, lost_after_seconds, 2 * lost_after_seconds));
  }
  if (connect_seconds > join_seconds) {
    path.member("connect_seconds")
        .fail(
            fmt::format("is {}; must be at most join_seconds, {}: lower it, or raise join_seconds",
                        connect_seconds, join_seconds));
  }
}

}  // namespace farstep::wan
