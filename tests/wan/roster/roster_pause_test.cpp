// A run that waits for sites because fewer than its min_sites are there.
#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

namespace {

// Three sites, in round 2, of which c is lost in mid-round.
Table paused(std::optional<int64_t> min_sites = {}) {
  Table table(kAll, 1, min_sites, {.lost_after_seconds = 5, .pause_seconds = 60});
  table.join();
  table.run_round(1);
  return table;
}

std::string pause_of(Table& table, const std::string& site) {
  return only<HeartbeatAckMessage>(
             table.receive(site, HeartbeatMessage{table.now_seconds, 2, 0, "", 1}))
      .pause;
}

FetchMessage fetch_of(const std::string& site) {
  return {"10.0.0.1", 4000, site + "/1"};
}

}  // namespace

TEST_CASE("a run with too few sites waits, and goes on where it was when the site is heard again") {
  auto table = paused();
  CHECK(pause_of(table, "a").empty());
  CHECK(table.pass(10, {"a", "b"}).empty());
  CHECK_THAT(pause_of(table, "a"), Contains("site c: silent for 6"));
  CHECK_THAT(table.roster.pause_text(), Contains("site c: silent for 6"));
  // Its place is kept, also if it had arrived.
  CHECK(receivers<Go>(table.receive("a", arrival(2))).empty());
  CHECK(receivers<Go>(table.receive("b", arrival(2))).empty());
  CHECK(table.pass(30, {"a", "b"}).empty());
  CHECK(receivers<Go>(table.receive("c", arrival(2))) == kAll);
  CHECK(table.roster.pause_text().empty());
  for (const auto& site : {"a", "b"}) table.receive(site, ballot(2));
  CHECK(receivers<CommittedMessage>(table.receive("c", ballot(2))) == kAll);
  CHECK_FALSE(table.roster.is_over());
}

TEST_CASE("no exchange begins with a site that is lost after it has arrived") {
  auto table = paused();
  table.receive("c", arrival(2));
  table.pass(10, {"a", "b"});
  table.receive("a", arrival(2));
  CHECK(receivers<Go>(table.receive("b", arrival(2))).empty());
  CHECK(table.pass(10, {"a", "b"}).empty());
  table.receive("c", HeartbeatMessage{table.now_seconds, 2, 0, "", 1});
  CHECK(receivers<Go>(table.pass(1, kAll)) == kAll);
}

TEST_CASE("sites that one cut takes are lost in one decision") {
  const auto cut = [](int64_t min_sites) {
    auto table = paused(min_sites);
    table.pass(3, kAll);
    // Their last signs of life: the two are heard at different times of a heartbeat.
    table.now_seconds += 0.5;
    table.receive("b", HeartbeatMessage{table.now_seconds, 2, 0, ""});
    table.now_seconds += 0.4;
    table.receive("c", HeartbeatMessage{table.now_seconds, 2, 0, ""});
    return table;
  };
  SECTION("too few are left: both keep their places, and nothing is lost when the line is back") {
    auto table = cut(2);
    CHECK(table.pass(10, {"a"}).empty());
    CHECK_THAT(table.roster.pause_text(), Contains("site b: silent for 6"));
    CHECK(table.roster.members() == kAll);
    for (const auto& site : {"b", "c"}) pause_of(table, site);
    for (const auto& site : {"a", "b"}) table.receive(site, arrival(2));
    CHECK(receivers<Go>(table.receive("c", arrival(2))) == kAll);
  }
  SECTION("enough are left: one generation begins without both, which names both") {
    auto table = cut(1);
    const auto told = table.pass(10, {"a"});
    CHECK(receivers<ViewMessage>(told) == Names{"a"});
    const auto view = only<ViewMessage>(told);
    CHECK(view.generation == 2);
    CHECK(view.sites == Names{"a"});
    CHECK(view.lost == "b");
    CHECK_THAT(view.reason, Contains("silent for 6") && Contains("; site c: silent for"));
  }
  SECTION("one of them is heard again: only the other is lost") {
    auto table = cut(2);
    table.pass(4, {"a"});
    const auto told = table.pass(4, {"a", "c"});
    CHECK(receivers<ViewMessage>(told) == Names{"a", "c"});
    CHECK(table.roster.pause_text().empty());
  }
}

TEST_CASE("two processes that are killed together are lost together") {
  auto table = paused(2);
  table.pass(3, kAll);
  table.now_seconds += 0.9;
  table.receive("c", HeartbeatMessage{table.now_seconds, 2, 0, ""});
  for (const auto& site : {"b", "c"}) table.roster.on_broken(site, table.now_seconds);
  CHECK(table.pass(5, {"a"}).empty());
  CHECK(table.roster.members() == kAll);
  CHECK_FALSE(table.roster.pause_text().empty());
}

TEST_CASE("a site that is started again during a pause gets the state of those that waited") {
  auto table = paused();
  table.pass(10, {"a", "b"});
  for (const auto& site : {"a", "b"}) table.receive(site, arrival(2));
  const auto told = table.receive("c2", registration("c"));
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  CHECK(receivers<Welcome>(told) == Names{"c2"});
  CHECK(table.roster.pause_text().empty());
  table.receive("c2", fetch_of("c"));
  for (const auto& site : {"a", "b"}) table.receive(site, arrival(2, "aa", 2));
  table.receive("a", ballot(2, "bb", 2));
  const auto committed = table.receive("b", ballot(2, "bb", 2));
  CHECK(receivers<HandoverMessage>(table.receive("a", OfferMessage{"c/1", 2})) == Names{"c2"});
  CHECK(receivers<CommittedMessage>(committed) == Names{"a", "b"});
  CHECK(receivers<ViewMessage>(table.receive("c2", arrival(3, "aa", 2))) == Names{"a", "b", "c2"});
  // If it is lost on the way to the state, the others wait again.
  auto again = paused();
  again.pass(10, {"a", "b"});
  again.receive("c2", registration("c"));
  again.pass(10, {"a", "b"});
  CHECK(again.roster.pause_text() == "2 of at least 3 sites are there");
  for (const auto& site : {"a", "b"}) {
    CHECK(receivers<Go>(again.receive(site, arrival(2, "aa", 2))).empty());
  }
  CHECK(receivers<Go>(again.receive("c3", registration("c"))).empty());
  CHECK(receivers<Go>(again.pass(1, {"a", "b", "c3"})) == Names{"a", "b"});
}

TEST_CASE("when enough sites are there again, the run goes on without those that are not") {
  auto table = paused(2);
  CHECK(receivers<ViewMessage>(table.pass(10, {"a", "b"})) == Names{"a", "b"});
  table.pass(10, {"a"});
  CHECK_THAT(table.roster.pause_text(), Contains("site b: silent"));
  CHECK(receivers<Welcome>(table.receive("c2", registration("c"))) == Names{"c2"});
  // The line may be back over which b is heard too.
  CHECK(table.pass(2, {"a", "c2"}).empty());
  SECTION("it is") {
    table.receive("b", HeartbeatMessage{table.now_seconds, 0, 0, ""});
    CHECK(table.roster.pause_text().empty());
    CHECK(table.roster.members() == Names{"a", "b"});
  }
  SECTION("it comes too late") {
    CHECK(receivers<ViewMessage>(table.pass(1, {"a", "c2"})) == Names{"a", "c2"});
    CHECK(table.roster.pause_text().empty());
    only<UnknownSiteMessage>(table.receive("b", arrival(2)));
  }
  SECTION("the pause begins again, and with it the time for the others") {
    table.receive("c2", LeaveMessage{Outcome::kInterrupted, ""});
    CHECK(table.pass(20, {"a"}).empty());
    CHECK_FALSE(table.roster.pause_text().empty());
  }
}

TEST_CASE("a newcomer that has the state goes on when the last member is gone") {
  auto table = paused(1);
  table.pass(10, {"a"});
  table.receive("c2", registration("c"));
  table.receive("c2", fetch_of("c"));
  table.receive("a", arrival(2, "aa", 2));
  table.receive("a", ballot(2, "bb", 2));
  CHECK(receivers<HandoverMessage>(table.receive("a", OfferMessage{"c/1", 2})) == Names{"c2"});
  table.receive("a", LeaveMessage{Outcome::kInterrupted, ""});
  CHECK_FALSE(table.roster.pause_text().empty());
  const auto told = table.receive("c2", arrival(3, "aa", 2));
  const auto view = std::get<ViewMessage>(told.back().message);
  CHECK(view.sites == Names{"c"});
  CHECK(table.roster.pause_text().empty());
  CHECK(receivers<Go>(table.receive("c2", arrival(3, "aa", view.generation))) == Names{"c2"});
}

TEST_CASE("a pause ends the run after pause_seconds") {
  auto table = paused();
  const auto told = table.pass(70, {"a", "b"});
  CHECK(receivers<PeerLostMessage>(told) == Names{"a", "b"});
  const auto lost = std::get<PeerLostMessage>(told.front().message);
  CHECK(lost.site == "c");
  CHECK_THAT(lost.reason, Contains("waited 60 s"));
  CHECK_THAT(table.roster.failure(), Contains("site c: silent"));
}

TEST_CASE("a site that was interrupted is waited for, one that failed is not") {
  auto table = paused();
  CHECK(
      receivers<PeerLostMessage>(table.receive("c", LeaveMessage{Outcome::kInterrupted, "SIGTERM"}))
          .empty());
  CHECK_THAT(pause_of(table, "a"), Contains("interrupted: SIGTERM"));
  // Only a new process can take the place.
  only<UnknownSiteMessage>(table.receive("c", arrival(2)));
  CHECK(receivers<Welcome>(table.receive("c2", registration("c"))) == Names{"c2"});

  auto other = paused();
  CHECK(receivers<PeerLostMessage>(
            other.receive("c", LeaveMessage{Outcome::kFailed, "no such file"})) == Names{"a", "b"});
  auto all = paused();
  for (const auto& site : kAll) all.receive(site, LeaveMessage{Outcome::kInterrupted, ""});
  CHECK(all.roster.is_over());
  CHECK_FALSE(all.roster.failure().empty());
}

TEST_CASE("while nobody is heard of, nobody is lost") {
  for (const int64_t min_sites : {1, 2, 3}) {
    auto table = paused(min_sites);
    CHECK(table.pass(50, {}).empty());
    CHECK(table.roster.pause_text() == "no site is heard of");
    CHECK_FALSE(table.roster.is_over());
    // Each has its time to be heard again, from the first on.
    CHECK(table.pass(4, {"b"}).empty());
    CHECK(table.pass(20, kAll).empty());
    CHECK(table.roster.pause_text().empty());
    for (const auto& site : kAll) table.receive(site, arrival(2));
    for (const auto& site : {"a", "b"}) table.receive(site, ballot(2));
    CHECK(receivers<CommittedMessage>(table.receive("c", ballot(2))) == kAll);
  }
  auto table = paused();
  table.pass(70, {});
  CHECK(table.roster.is_over());
  CHECK_THAT(table.roster.failure(), Contains("no site is heard of"));
}

TEST_CASE("if new processes come and no old one, the run is abandoned") {
  auto table = paused(1);
  table.pass(10, {});
  CHECK(only<WaitingMessage>(table.receive("a2", registration("a"))).missing == kAll);
  table.pass(10, {});
  CHECK(table.roster.is_abandoned());
  // The same if the last one was interrupted.
  auto other = paused(2);
  other.pass(10, {"a", "b"});
  other.pass(10, {"a"});
  other.receive("a", LeaveMessage{Outcome::kInterrupted, ""});
  only<WaitingMessage>(other.receive("a2", registration("a")));
  CHECK_FALSE(other.roster.is_abandoned());
  other.pass(10, {});
  CHECK(other.roster.is_abandoned());
  // But not if b comes back.
  other.receive("b", HeartbeatMessage{other.now_seconds, 2, 0, "", 2});
  CHECK_FALSE(other.roster.is_abandoned());
}

TEST_CASE("an exchange that a pause broke is repeated by the same members") {
  auto table = paused();
  for (const auto& site : kAll) table.receive(site, arrival(2));
  table.receive("a", SuspectMessage{1, "c"});
  // Longer than connections may stay broken.
  table.pass(40, {"a", "b"});
  table.receive("b", SuspectMessage{1, "c"});
  const auto told = table.pass(3, kAll);
  CHECK(receivers<ViewMessage>(told) == kAll);
  const auto view = std::get<ViewMessage>(told.front().message);
  CHECK(view.sites == kAll);
  CHECK(view.generation == 2);
}

TEST_CASE("a pause outlives the coordinator") {
  auto before = paused();
  before.pass(10, {"a", "b"});
  Table table(before, before.roster.state());
  CHECK_THAT(pause_of(table, "a"), Contains("site c: silent"));
  CHECK(table.pass(20, {"a", "b"}).empty());
  table.receive("c", HeartbeatMessage{table.now_seconds, 2, 0, "", 1});
  CHECK(table.roster.pause_text().empty());
  for (const auto& site : {"a", "b"}) table.receive(site, arrival(2));
  CHECK(receivers<Go>(table.receive("c", arrival(2))) == kAll);
}
