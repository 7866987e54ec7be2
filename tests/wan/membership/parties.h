// A run's coordinator and sites in one process, for tests over real sockets.
#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"

namespace farstep::wan {

// The log is made before any thread: ThreadSanitizer does not see how spdlog guards its own start.
inline const auto kLog = spdlog::default_logger();

// Quick repetitions, and patience enough for a busy machine.
inline Deadlines patient_deadlines() {
  return {.join_seconds = 30,
          .connect_seconds = 5,
          .heartbeat_seconds = 0.02,
          .lost_after_seconds = 20,
          .pause_seconds = 0,
          .transfer_stall_seconds = 60,
          .leave_seconds = 10};
}

// For tests in which someone is lost.
inline Deadlines quick_deadlines() {
  Deadlines deadlines = patient_deadlines();
  deadlines.heartbeat_seconds = 0.05;
  deadlines.lost_after_seconds = 1;
  deadlines.coordinator_lost_after_seconds = 1;
  return deadlines;
}

// A run of sites named s0, s1, ..., as a coordinator serves it.
inline ServedRun served(int sites, const Deadlines& deadlines = patient_deadlines(),
                        std::optional<int64_t> min_sites = {}) {
  ServedRun run;
  run.min_sites = min_sites;
  for (int i = 0; i < sites; ++i) run.sites.push_back("s" + std::to_string(i));
  run.config = {{"name", "test"}, {"sites", run.sites}, {"deadlines", to_json(deadlines)}};
  return run;
}
inline Json run_of(int sites) {
  return served(sites).config;
}

inline constexpr const char* kAnyPort = "tcp://127.0.0.1:*";

// The text of what `call` throws as an `Exception`; empty if it throws nothing.
template <typename Exception, typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

inline std::string name_of_site(int i) {
  return "s" + std::to_string(i);
}

// A coordinator hears of a newer one by a later message than the sites do.
inline void wait_until_it_stands_by(Coordinator& coordinator) {
  while (coordinator.serves_run()) {
    if (coordinator.wait_until_over(0.01)) throw InternalError("the run is over");
  }
}

// A coordinator with members that have joined and learnt the deadlines from the run.
struct Party {
  Party(int sites, const Deadlines& deadlines, std::optional<int64_t> min_sites = {})
      : coordinator(std::make_unique<Coordinator>(kAnyPort, served(sites, deadlines, min_sites),
                                                  deadlines, clock)) {
    for (int i = 0; i < sites; ++i) {
      members.push_back(std::make_unique<Member>(coordinator->endpoint(), name_of_site(i),
                                                 patient_deadlines(), clock));
    }
    run_ranks(sites, [this](int i) { members[i]->join({}); });
  }

  RealClock clock;
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<Member>> members;
};

}  // namespace farstep::wan
