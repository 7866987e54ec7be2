// Every deadline of the system, in one table. They are settings of the run, equal at all sites.
//
// A site that is as slow as usual is waited for without a limit, for as long as its heartbeats
// come.
#pragma once

#include "trainer/config/fields.h"

namespace farstep::wan {

struct Deadlines {
  // A clock that counts nanoseconds cannot add more than some hundred years.
  static constexpr Rules kSeconds = in_range(0.001, 1e8);

  double join_seconds = 300;
  double connect_seconds = 10;
  double heartbeat_seconds = 1;
  double lost_after_seconds = 45;
  double coordinator_lost_after_seconds = 300;
  double pause_seconds = 600;
  double laggard_seconds = 3600;
  double transfer_stall_seconds = 60;
  double leave_seconds = 5;
  double checkpoint_seconds = 600;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("join_seconds", join_seconds,
          "how long a site waits at start-up for the coordinator and all other sites", kSeconds);
    visit("connect_seconds", connect_seconds,
          "how long one connection to a peer may take to open and be checked", kSeconds);
    visit("heartbeat_seconds", heartbeat_seconds, "how often every process says that it lives",
          kSeconds);
    visit(
        "lost_after_seconds", lost_after_seconds,
        "silence after which a site counts as lost, if its connections have not broken: so a link "
        "may fail for so long; at least 3 heartbeats",
        kSeconds);
    visit("coordinator_lost_after_seconds", coordinator_lost_after_seconds,
          "how long a site trains on without the coordinator, which may be restarted meanwhile, "
          "before it ends; at least lost_after_seconds",
          kSeconds);
    visit("pause_seconds", pause_seconds,
          "how long a run waits for lost sites, when fewer than min_sites are there, before it "
          "ends; 0: it ends at once",
          in_range(0, 1e8));
    visit("laggard_seconds", laggard_seconds,
          "the most that a living site may come to a sync later than it usually does, before the "
          "others go on without it, if min_sites are left; the limit itself is one more round, or "
          "what the site usually needs after the others",
          kSeconds);
    visit("transfer_stall_seconds", transfer_stall_seconds,
          "how long a transfer between two living sites may go without a byte", kSeconds);
    visit("leave_seconds", leave_seconds,
          "how long a site that ends waits for its last messages to be sent", kSeconds);
    visit("checkpoint_seconds", checkpoint_seconds,
          "how long the disk may take for a checkpoint, which is written behind training",
          kSeconds);
  }

  // Throws ConfigError naming `file` and the member if one of these orders does not hold:
  // 3 heartbeat <= lost_after < transfer_stall; lost_after <= coordinator_lost_after; connect <=
  // join.
  void validate(const std::string& file) const;
};

}  // namespace farstep::wan
