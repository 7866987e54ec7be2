// The members of a run, at a roster that does not know them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

namespace farstep::wan {

// The registration of a member of generation 3 of the sites a, b and c.
inline RegisterMessage returning(const std::string& site, int64_t committed_round,
                                 int64_t generation = 3) {
  auto message = registration(site);
  message.generation = generation;
  message.term = 7;
  message.committed_round = committed_round;
  message.memory = RunMemory{
      kAll, {{"a", Json{{"of", "a"}}}, {"b", nullptr}, {"c", nullptr}}, {{"compute/a", "62"}}};
  return message;
}

inline Table blank(std::optional<int64_t> min_sites = {}) {
  return Table(kAll, 1, min_sites, {.lost_after_seconds = 5, .pause_seconds = 60});
}

// Sites that register every second, and keep the promise that a claim asks for.
struct Crowd {
  explicit Crowd(Table& at) : table(at) {}

  void send(const std::string& connection, RegisterMessage message) {
    const auto known = last.find(connection);
    if (known != last.end()) message.term = std::max(message.term, known->second.term);
    last[connection] = message;
    take(table.receive(connection, message));
  }
  // Lets time pass, in which these repeat their registrations until the run has begun, and live.
  void pass(double seconds, const Names& connections) {
    for (double passed = 0; passed < seconds; ++passed) {
      table.now_seconds += 1;
      for (const auto& connection : connections) {
        if (table.roster.has_begun()) {
          take(table.receive(connection, HeartbeatMessage{}));
        } else {
          send(connection, last.at(connection));
        }
      }
      take(table.roster.tick(table.now_seconds));
    }
  }
  void take(const std::vector<Outgoing>& answers) {
    for (const auto& answer : answers) {
      seen.push_back(answer);
      const auto* claim = std::get_if<ClaimMessage>(&answer.message);
      if (claim == nullptr || table.roster.has_begun()) continue;
      auto promise = last.at(answer.connection);
      if (promise.term >= claim->term) continue;
      promise.term = claim->term;
      send(answer.connection, promise);
    }
  }
  Names welcomed() const { return receivers<Welcome>(seen); }
  ViewMessage view() const {
    const auto views = receivers<ViewMessage>(seen);
    REQUIRE_FALSE(views.empty());
    for (const auto& [connection, message] : seen) {
      if (const auto* found = std::get_if<ViewMessage>(&message)) return *found;
    }
    return {};
  }

  Table& table;
  std::map<std::string, RegisterMessage> last;  // by connection
  std::vector<Outgoing> seen;
};

// A coordinator of several.
inline Table stand_by(int64_t place, int64_t min_sites) {
  return Table(kAll, 1, min_sites, {.lost_after_seconds = 20, .pause_seconds = 60}, place);
}

}  // namespace farstep::wan
