// A coordinator that goes on with the state of one that has died.
#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"
#include "wan/protocol/protocol.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// The next coordinator of the same run, in a term of its own.
Table restarted(const Table& table) {
  auto state = table.roster.state();
  ++state.term;
  return {table, state};
}

std::string text_of(const Roster& roster) {
  return to_json(roster.state()).dump();
}

HeartbeatMessage beat(int64_t generation, int64_t term) {
  return {0, 0, 0, "", generation, term};
}

// Three sites that have done two rounds.
Table after_two_rounds(int64_t min_sites = 1) {
  Table table({"a", "b", "c"}, 1, min_sites);
  table.join();
  table.receive("a", PutMessage{"address", "00ff"});
  table.run_round(1);
  table.run_round(2);
  return table;
}

}  // namespace

TEST_CASE("a roster that goes on has the same state, whatever has happened") {
  auto table = after_two_rounds();
  const auto check = [&](const char* what) {
    INFO(what);
    const Table next(table, table.roster.state());
    CHECK(text_of(next.roster) == text_of(table.roster));
    CHECK(next.roster.has_begun());
    CHECK(next.roster.failure() == table.roster.failure());
    CHECK(next.roster.newest_change() == table.roster.newest_change());
  };
  check("between two syncs");
  for (const auto* site : {"a", "b", "c"}) table.receive(site, arrival(3));
  check("in the exchange");
  table.pass(10, {"a", "b"});
  check("in the next generation");
  table.receive("a", LeaveMessage{Outcome::kDone, ""});
  check("after one has left");
  table.receive("b", arrival(3, "aa", 2));
  table.roster.end("a stop");
  check("after the end");
}

TEST_CASE("a roster that sites still join keeps only its term") {
  Table table({"a", "b"});
  table.receive("a", registration("a"));
  auto next = restarted(table);
  CHECK_FALSE(next.roster.has_begun());
  CHECK(next.roster.term() == 2);
  next.join();
}

TEST_CASE("what sites repeat after a restart is answered as before it") {
  auto table = after_two_rounds();
  SECTION("between arrivals") {
    table.receive("a", arrival(3));
    auto next = restarted(table);
    CHECK(next.receive("b", arrival(3)).empty());
    CHECK(next.receive("c", arrival(3)).empty());
    CHECK(receivers<Go>(next.receive("a", arrival(3))) == Names{"a", "b", "c"});
  }
  SECTION("when all have arrived and some have not heard so") {
    for (const auto* site : {"a", "b", "c"}) table.receive(site, arrival(3));
    auto next = restarted(table);
    // a has its go, and its exchange is done.
    CHECK(next.receive("a", ballot(3)).empty());
    CHECK(only<Go>(next.receive("b", arrival(3))).contributions.size() == 3);
    CHECK(next.receive("b", ballot(3)).empty());
    CHECK(receivers<CommittedMessage>(next.receive("c", ballot(3))) == Names{"a", "b", "c"});
    CHECK(only<CommittedMessage>(next.receive("a", ballot(3))).round == 3);
  }
  SECTION("when the commit was not heard") {
    table.run_round(3);
    auto next = restarted(table);
    CHECK(only<CommittedMessage>(next.receive("b", ballot(3))).round == 3);
  }
  SECTION("a registration, and values") {
    auto next = restarted(table);
    const auto welcome = only<Welcome>(next.receive("b", registration("b")));
    CHECK(welcome.site_id == 1);
    CHECK(welcome.term == 2);
    CHECK(only<ValueMessage>(next.receive("c", GetMessage{"address"})).value == "00ff");
  }
}

TEST_CASE("no site is lost before it had its time to come back") {
  auto table = after_two_rounds();
  table.now_seconds += 1000;
  auto next = restarted(table);
  // Nobody comes: it may be the coordinator that has no network.
  CHECK(next.pass(1000, {}).empty());
  next.receive("a", beat(1, 1));
  CHECK(next.pass(4, {"a"}).empty());
  next.receive("b", beat(1, 1));
  const auto told = next.pass(3, {"a", "b"});
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  CHECK(next.roster.state().run->progress.members == Names{"a", "b"});
}

TEST_CASE("a suspect has the whole time to come back after a restart") {
  auto table = after_two_rounds();
  auto next = restarted(table);
  next.receive("a", SuspectMessage{1, "c"});
  CHECK(next.pass(4, {"a", "b"}).empty());
  CHECK(next.roster.state().run->progress.generation == 1);
}

TEST_CASE("new processes wait for the old ones and begin anew if none comes back") {
  auto table = after_two_rounds();
  auto next = restarted(table);
  CHECK(only<WaitingMessage>(next.receive("new a", registration("a"))).missing ==
        Names{"a", "b", "c"});
  next.pass(4, {});
  CHECK_FALSE(next.roster.is_abandoned());
  SECTION("none does") {
    next.pass(3, {});
    CHECK(next.roster.is_abandoned());
  }
  SECTION("one does") {
    next.receive("b", beat(1, 1));
    CHECK(next.pass(2, {"b"}).empty());
    CHECK_FALSE(next.roster.is_abandoned());
    // The old process may come back still; soon its place is lost.
    CHECK(only<WaitingMessage>(next.receive("new a", registration("a"))).missing ==
          Names{"a", "c"});
    CHECK(receivers<ViewMessage>(next.pass(1, {"b"})) == Names{"b", "c"});
    CHECK(only<Welcome>(next.receive("new a", registration("a"))).is_newcomer);
    // Nobody asks for the place of c, which has the whole time.
    CHECK(next.roster.state().run->progress.members == Names{"b", "c"});
  }
  SECTION("one whose place is asked for lives") {
    next.receive("b", beat(1, 1));
    next.receive("a", beat(1, 1));
    CHECK(next.pass(4, {"a", "b"}).empty());
  }
}

// It was in the process of the coordinator before.
TEST_CASE("the host of a coordinator that was restarted is not waited for") {
  for (const int64_t min_sites : {2, 3}) {
    auto table = after_two_rounds(min_sites);
    table.deadlines.pause_seconds = 60;
    table.run.host = "a";
    auto next = restarted(table);
    CHECK(next.pass(3, {}).empty());
    const auto told = next.receive("b", beat(1, 1));
    CHECK(next.receive("c", beat(1, 1)).size() <= 2);
    if (min_sites == 2) {
      CHECK(receivers<ViewMessage>(told) == Names{"b", "c", "b"});  // and to b's heartbeat
      CHECK(std::get<ViewMessage>(told.front().message).lost == "a");
    } else {
      CHECK(receivers<ViewMessage>(told).empty());
      CHECK_THAT(next.roster.pause_text(), Catch::StartsWith("site a: its process has ended"));
    }
    CHECK(std::get<Welcome>(next.receive("new a", registration("a")).back().message).is_newcomer);
    CHECK(next.roster.pause_text().empty());
    // Later the line of the coordinator fails, and all of them come back.
    next.pass(10, {});
    CHECK(next.pass(3, {"new a", "b", "c"}).empty());
    CHECK(next.roster.connected_sites() == kAll);
  }
}

TEST_CASE("a run that all have left is not gone on with") {
  auto table = after_two_rounds();
  for (const auto* site : {"a", "b", "c"}) table.receive(site, LeaveMessage{Outcome::kDone, ""});
  auto next = restarted(table);
  CHECK_FALSE(next.roster.has_begun());
  next.join();
}

TEST_CASE("the end of a run is told by the next coordinator, in its own term") {
  auto table = after_two_rounds(3);
  table.receive("c", LeaveMessage{Outcome::kFailed, "a full disk"});
  auto next = restarted(table);
  const auto verdict = only<PeerLostMessage>(next.receive("a", arrival(3)));
  CHECK(verdict.site == "c");
  CHECK(verdict.term == 2);
}

TEST_CASE("the end of a coordinator ends the run only for sites that are in it") {
  auto table = after_two_rounds();
  table.receive("a", LeaveMessage{Outcome::kDone, ""});
  CHECK(receivers<PeerLostMessage>(table.roster.end("a stop")) == Names{"b", "c"});
  CHECK(table.roster.failure() == "a stop");
  Table done({"a"});
  done.join();
  done.receive("a", LeaveMessage{Outcome::kDone, ""});
  CHECK(done.roster.end("a stop").empty());
  CHECK(done.roster.failure().empty());
}

TEST_CASE("a coordinator serves no more when its members know a newer one") {
  auto table = after_two_rounds();
  CHECK(table.receive("b", beat(1, 2)).empty());
  CHECK(table.roster.is_superseded());
  CHECK(table.roster.term() == 2);
  CHECK_THAT(table.roster.failure(), Catch::Contains("site b knows a coordinator of term 2"));
  CHECK(table.receive("a", beat(1, 1)).empty());
  CHECK(table.pass(100, {}).empty());
}

TEST_CASE("a coordinator takes no new process in that knows a newer one") {
  auto table = after_two_rounds();
  auto newer = registration("b");
  newer.term = 2;
  CHECK(table.receive("b2", newer).empty());  // in the other one's term
  CHECK(table.roster.is_superseded());
}

TEST_CASE("a coordinator whose state is older than its sites' serves no more") {
  auto table = after_two_rounds();
  const auto old = table.roster.state();
  table.pass(10, {"a", "b"});
  auto state = old;
  state.term = 5;
  Table next(table, state);
  next.receive("a", beat(2, 1));
  CHECK_THAT(next.roster.failure(), Catch::Contains("its journal is older than the run"));
}

TEST_CASE("before a run begins a coordinator takes a term above those that its sites know") {
  Table table({"a", "b"});
  auto request = registration("a");
  request.term = 7;
  table.receive("a", request);
  const auto answers = table.receive("b", registration("b"));
  REQUIRE(receivers<Welcome>(answers) == Names{"a", "b"});
  CHECK(std::get<Welcome>(answers[0].message).term == 8);
}

TEST_CASE("a member that was lost may join again if the others go on") {
  for (const int64_t min_sites : {2, 3}) {
    auto table = after_two_rounds(min_sites);
    table.pass(10, {"a", "b"});
    auto request = registration("c");
    request.generation = 1;
    request.committed_round = 2;
    const auto refusal = only<RefusedMessage>(table.receive("c", request));
    CHECK(refusal.is_temporary);
    CHECK(refusal.is_left_behind == (min_sites == 2));
    if (min_sites == 3) continue;
    CHECK(only<Welcome>(table.receive("c2", registration("c"))).is_newcomer);
  }
}

TEST_CASE("above every term that a site may name there is one for the coordinator") {
  const auto highest = static_cast<int64_t>(kMostTerm);
  CHECK_THROWS_WITH(decode_site_message(encode(beat(1, highest + 1))), Catch::Contains("term"));
  Table table({"a", "b"});
  auto known = registration("a");
  known.term = highest;
  table.receive("a", std::get<RegisterMessage>(decode_site_message(encode(known))));
  const auto answers = table.receive("b", registration("b"));
  CHECK(std::get<Welcome>(answers.front().message).term == highest + 1);
  CHECK_NOTHROW(decode_coordinator_message(encode(answers.front().message)));
  CHECK(restarted(table).roster.term() == highest + 2);
}
