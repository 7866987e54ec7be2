// Newcomers that fail before a sync is committed with them.
#include "tests/wan/roster/newcomers.h"

namespace farstep::wan {
namespace {

// Site c's new process is a member of generation 3, in whose first sync all exchange.
void join_again(Table& table) {
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  table.receive("a", kOffer);
  table.receive("c2", arrival_with(0, 2));
  for (const auto* site : {"a", "b", "c2"}) table.receive(site, arrival(2, "aa", 3));
}

const LeaveMessage kUnreached{Outcome::kFailed, "b cannot reach c"};

TEST_CASE("a newcomer that nobody reaches leaves, and the members go on at once") {
  auto table = without_c();
  join_again(table);
  for (const auto* site : {"a", "b"}) table.receive(site, SuspectMessage{3, "c"});
  const auto told = table.receive("c2", kUnreached);
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  CHECK(std::get<ViewMessage>(told.back().message).lost == "c");
  CHECK_THAT(std::get<ViewMessage>(told.back().message).reason,
             Catch::EndsWith("b cannot reach c"));
  table.receive("a", arrival(2, "aa", 4));
  CHECK(receivers<Go>(table.receive("b", arrival(2, "aa", 4))) == Names{"a", "b"});
}

// The failure of a member that the run needs ends it at once, as it would happen again.
TEST_CASE("a run that paused before a newcomer failed in its first sync pauses again") {
  auto deadlines = kTableDeadlines;
  deadlines.pause_seconds = 100;
  for (const bool has_synced : {false, true}) {
    for (const bool is_restarted : {false, true}) {
      Table table(kAll, 1, 3, deadlines);
      table.join();
      for (const auto* site : {"a", "b"}) table.receive(site, arrival(1));
      table.pass(10, {"a", "b"});
      REQUIRE_FALSE(table.roster.pause_text().empty());
      join_again(table);
      CHECK(table.roster.pause_text().empty());
      if (has_synced) {
        for (const auto* site : {"a", "b", "c2"}) table.receive(site, ballot(2, "bb", 3));
      }
      Table next(table, table.roster.state());
      auto& now = is_restarted ? next : table;
      const auto told = now.receive("c2", kUnreached);
      CHECK(receivers<PeerLostMessage>(told).empty() != has_synced);
      CHECK_THAT(now.roster.pause_text(), Catch::Contains(has_synced ? "" : "b cannot reach c"));
      if (has_synced) continue;
      // It comes again, and the run goes on.
      now.receive("c3", registration("c"));
      CHECK(now.roster.pause_text().empty());
    }
  }
}

}  // namespace
}  // namespace farstep::wan
