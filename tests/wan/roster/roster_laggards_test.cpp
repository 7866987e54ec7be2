// Sites that live, and come to a sync much later than they usually do.
#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

namespace {

// After four rounds of 20 s, to which c comes 4 s after a and b.
Table after_rounds(int64_t min_sites) {
  Table table(kAll, 1, min_sites, {.lost_after_seconds = 5, .pause_seconds = 60});
  table.join();
  for (int64_t round = 1; round <= 4; ++round) {
    table.pass(16, kAll);
    table.receive("a", arrival(round));
    table.receive("b", arrival(round));
    table.pass(4, kAll);
    table.receive("c", arrival(round));
    for (const auto& site : kAll) table.receive(site, ballot(round));
  }
  table.pass(16, kAll);
  table.receive("a", arrival(5));
  table.receive("b", arrival(5));
  return table;
}

}  // namespace

TEST_CASE("the others go on without a living site that does not come to the sync") {
  auto table = after_rounds(2);
  // What it usually needs, and a round.
  CHECK(table.pass(4 + 16, kAll).empty());
  const auto told = table.pass(1, kAll);
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  const auto view = std::get<ViewMessage>(told.front().message);
  CHECK(view.sites == Names{"a", "b"});
  CHECK(view.lost == "c");
  CHECK_THAT(view.reason, Contains("it lives, but has not come to round 5; usually it comes 4 s "
                                   "after half of the sites"));
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(5, "aa", view.generation));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot(5, "bb", view.generation));
  // It hears so, and may join again.
  CHECK_THAT(only<UnknownSiteMessage>(table.receive("c", HeartbeatMessage{})).message,
             Contains("site c counts as lost: it lives, but"));
  auto again = registration("c");
  again.generation = 1;
  const auto refusal = only<RefusedMessage>(table.receive("c", again));
  CHECK(refusal.is_left_behind);
  CHECK(only<Welcome>(table.receive("c2", registration("c"))).is_newcomer);
}

TEST_CASE("a site that has fallen silent is no laggard") {
  auto table = after_rounds(2);
  table.pass(18, kAll);
  const auto told = table.pass(10, {"a", "b"});
  CHECK_THAT(only<ViewMessage>({told.front()}).reason, Catch::StartsWith("silent for"));
}

TEST_CASE("a site that is needed is waited for") {
  auto table = after_rounds(3);
  CHECK(table.pass(500, kAll).empty());
  CHECK(receivers<Go>(table.receive("c", arrival(5))) == kAll);
}

TEST_CASE("a site that is in the exchange is no laggard") {
  auto table = after_rounds(2);
  table.receive("c", arrival(5));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot(5));
  CHECK(table.pass(500, kAll).empty());
}

TEST_CASE("nobody is late because a site that leaves comes early") {
  for (const bool is_leaving : {true, false}) {
    Table table({"a", "b"}, 1, 1, {.lost_after_seconds = 5, .pause_seconds = 60});
    table.join();
    for (int64_t round = 1; round <= 4; ++round) {
      table.pass(40, {"a", "b"});
      for (const auto* site : {"a", "b"}) table.receive(site, arrival(round));
      for (const auto* site : {"a", "b"}) table.receive(site, ballot(round));
    }
    table.pass(2, {"a", "b"});
    auto early = arrival(5);
    early.contribution.timing.is_leaving = is_leaving;
    table.receive("a", early);
    // Without the word that it leaves, the other one has a round of 2 s more.
    CHECK(table.pass(38, {"a", "b"}).empty() == is_leaving);
    if (!is_leaving) continue;
    CHECK(receivers<Go>(table.receive("b", arrival(5))) == Names{"a", "b"});
    for (const auto* site : {"a", "b"}) table.receive(site, ballot(5));
    table.receive("a", LeaveMessage{Outcome::kInterrupted, "interrupted"});
    CHECK(table.roster.newest_change().starts_with("site a: it left the run: interrupted"));
  }
}
