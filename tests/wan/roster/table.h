// A roster at work: what sites send to it, and what it sends to whom.
#pragma once

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "wan/roster/roster.h"

namespace farstep::wan {

inline Json run_of(const std::vector<std::string>& sites) {
  return {{"name", "test"}, {"sites", sites}, {"outer", {{"rounds", 10}}}};
}

inline RegisterMessage registration(const std::string& site) {
  RegisterMessage message;
  message.site = site;
  return message;
}

inline ArriveMessage arrival(int64_t round, const std::string& hash = "aa",
                             int64_t generation = 1) {
  return {generation, round, 0, {{100, 4, 1000}}, hash};
}

inline VoteMessage ballot(int64_t round, const std::string& hash = "bb", int64_t generation = 1) {
  return {generation, round, 0, hash};
}

// Of rosters whose time the tests count in seconds, and whose run does not wait for lost sites.
inline const Deadlines kTableDeadlines{.lost_after_seconds = 5, .pause_seconds = 0};

// A roster whose sites are on connections of the same name, and a time of its own.
class Table {
 public:
  // Without `min_sites` every loss ends the run, or pauses it.
  explicit Table(std::vector<std::string> sites, int64_t fragments = 1,
                 std::optional<int64_t> min_sites = {},
                 const Deadlines& wanted_deadlines = kTableDeadlines,
                 std::optional<int64_t> place = {})
      : sites_(std::move(sites)),
        deadlines(wanted_deadlines),
        run({.config = run_of(sites_),
             .sites = sites_,
             .fragments = fragments,
             .min_sites = min_sites,
             .place = place}),
        roster(run, deadlines) {}
  Table(ServedRun served, const Deadlines& wanted_deadlines)
      : sites_(served.sites),
        deadlines(wanted_deadlines),
        run(std::move(served)),
        roster(run, deadlines) {}

  // A coordinator that goes on with the state of another one.
  Table(const Table& before, const RosterState& state)
      : sites_(before.sites_),
        deadlines(before.deadlines),
        run(before.run),
        roster(run, deadlines, state, before.now_seconds),
        now_seconds(before.now_seconds) {}

  std::vector<Outgoing> receive(const std::string& connection, const SiteMessage& message) {
    return roster.receive(connection, message, now_seconds);
  }
  void join() {
    for (const auto& site : sites_) receive(site, registration(site));
    REQUIRE(roster.has_begun());
  }
  void run_round(int64_t round) {
    for (const auto& site : sites_) receive(site, arrival(round));
    for (const auto& site : sites_) receive(site, ballot(round));
  }
  // Lets time pass, with heartbeats every second from the sites that live.
  std::vector<Outgoing> pass(double seconds, const std::vector<std::string>& living) {
    std::vector<Outgoing> seen;
    for (const double end_seconds = now_seconds + seconds; now_seconds < end_seconds;) {
      now_seconds += 1;
      for (const auto& site : living) receive(site, HeartbeatMessage{now_seconds, 0, 0, ""});
      for (const auto& message : roster.tick(now_seconds)) seen.push_back(message);
    }
    return seen;
  }

 private:
  std::vector<std::string> sites_;

 public:
  Deadlines deadlines;
  ServedRun run;
  Roster roster;
  double now_seconds = 1000;
};

// The connections that get a message of this type, in order.
template <typename Message>
std::vector<std::string> receivers(const std::vector<Outgoing>& messages) {
  std::vector<std::string> connections;
  for (const auto& [connection, message] : messages) {
    if (std::holds_alternative<Message>(message)) connections.push_back(connection);
  }
  return connections;
}

// The one message that there is, which must be of this type.
template <typename Message>
Message only(const std::vector<Outgoing>& messages) {
  REQUIRE(messages.size() == 1);
  REQUIRE(std::holds_alternative<Message>(messages[0].message));
  return std::get<Message>(messages[0].message);
}

using Names = std::vector<std::string>;

inline const Names kAll = {"a", "b", "c"};

}  // namespace farstep::wan
