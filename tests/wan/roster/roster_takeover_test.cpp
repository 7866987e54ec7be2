// A coordinator without a state, to which the members of a run come.
#include "tests/support/catch.h"
#include "tests/wan/roster/crowd.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;

TEST_CASE("when all members have come, a coordinator goes on with their run") {
  auto table = blank();
  Crowd crowd(table);
  for (const auto* site : {"a", "b", "c"}) {
    crowd.send(site, returning(site, std::string(site) == "b" ? 5 : 4));
  }
  CHECK(receivers<WaitingMessage>(crowd.seen) == kAll);
  CHECK_FALSE(table.roster.has_begun());
  // What comes once may be old.
  crowd.seen.clear();
  crowd.pass(1, kAll);
  CHECK(receivers<ClaimMessage>(crowd.seen).size() >= 3);
  CHECK(crowd.welcomed() == kAll);
  CHECK(receivers<ViewMessage>(crowd.seen) == kAll);
  // The newest commit that a member knows counts.
  const auto view = crowd.view();
  CHECK(view.sites == kAll);
  CHECK(view.committed_round == 5);
  CHECK(view.lost.empty());
  CHECK(view.generation > 4);
  CHECK(view.lost_generation == view.generation);
  CHECK(view.term == 8);
  // One whose vote was not answered learns that the sync counts.
  CHECK(only<CommittedMessage>(table.receive("a", ballot(5, "bb", 3))).round == 5);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(6, "aa", view.generation));
  CHECK(receivers<Go>(table.receive("c", arrival(6, "aa", view.generation))) == kAll);
  // What newcomers need is known.
  CHECK(only<ValueMessage>(table.receive("b", GetMessage{"compute/a"})).value == "62");
  table.pass(20, {"a", "b"});
  const auto newcomer = table.receive("c2", registration("c"));
  const auto welcome = std::get<Welcome>(newcomer.back().message);
  CHECK(welcome.is_newcomer);
  CHECK(welcome.first_sites.at(0).profile == Json{{"of", "a"}});
}

TEST_CASE("members that do not come are lost to the others, if enough have come") {
  for (const int64_t min_sites : {2, 3}) {
    auto table = blank(min_sites);
    Crowd crowd(table);
    for (const auto* site : {"a", "b"}) crowd.send(site, returning(site, 4));
    crowd.pass(5, {"a", "b"});
    CHECK(crowd.welcomed().empty());
    crowd.pass(5, {"a", "b"});
    if (min_sites == 3) {
      CHECK(receivers<ClaimMessage>(crowd.seen).empty());
      crowd.send("c", returning("c", 4));
      crowd.pass(2, kAll);
      CHECK(crowd.welcomed() == kAll);
      continue;
    }
    CHECK(crowd.welcomed() == Names{"a", "b"});
    CHECK(crowd.view().sites == Names{"a", "b"});
    // c comes too late, and joins as a newcomer.
    CHECK(only<RefusedMessage>(table.receive("c", returning("c", 4))).is_left_behind);
  }
}

// A stand-by has connections to all sites, and so knows more than who comes to it.
TEST_CASE("a stand-by waits for a missing member from its last sign of life on") {
  // How long a and b wait until they go on at the stand-by without c.
  const auto wait = [](auto&& happens_to_c) {
    auto table = stand_by(0, 2);
    Crowd crowd(table);
    for (const auto& site : kAll) {
      table.receive(site, registration(site));
      table.receive(site, HeartbeatMessage{});
    }
    happens_to_c(table);
    for (const auto* site : {"a", "b"}) crowd.send(site, returning(site, 4));
    const double begin_seconds = table.now_seconds;
    while (!table.roster.has_begun() && table.now_seconds < begin_seconds + 100) {
      crowd.pass(1, {"a", "b"});
    }
    CHECK(crowd.welcomed() == Names{"a", "b"});
    return table.now_seconds - begin_seconds;
  };
  CHECK(wait([](Table&) {}) == 21);  // lost_after_seconds is 20
  CHECK(wait([](Table& table) { table.pass(12, {"a", "b"}); }) == 9);
  // Silence or not, the one that may serve the run has its time to take in who was just started.
  CHECK(wait([](Table& table) { table.pass(30, {"a", "b"}); }) == 7);
  const auto ends = [](Table& table) { table.roster.on_broken("c", table.now_seconds); };
  CHECK(wait(ends) == 7);
  CHECK(wait([](Table& table) { table.roster.on_closed_line("c", table.now_seconds); }) == 7);
  CHECK(wait([](Table& table) {
          table.receive("c", LeaveMessage{Outcome::kInterrupted, ""});
        }) == 7);
  // It has made its connection again.
  CHECK(wait([&](Table& table) {
          ends(table);
          table.receive("c", HeartbeatMessage{});
        }) == 21);
  // Its connections broke with the line.
  CHECK(wait([&](Table& table) {
          table.pass(12, {"a", "b"});
          ends(table);
        }) == 9);
}

TEST_CASE("a new process in a member's place is a newcomer, and not waited for") {
  auto table = blank();
  Crowd crowd(table);
  crowd.send("c2", registration("c"));
  for (const auto* site : {"a", "b"}) crowd.send(site, returning(site, 4));
  crowd.pass(2, {"c2", "a", "b"});
  CHECK(crowd.welcomed() == Names{"a", "b", "c2"});
  CHECK(crowd.view().sites == Names{"a", "b"});
  CHECK(table.roster.pause_text().empty());
  // New processes alone do not begin another run beside members.
  auto other = blank();
  Crowd few(other);
  few.send("b", returning("b", 4));
  few.send("c2", registration("c"));
  few.send("a2", registration("a"));
  few.pass(1, {"b", "c2", "a2"});
  CHECK(few.welcomed() == Names{"b", "a2", "c2"});
  CHECK(few.view().sites == Names{"b"});
  // They are known to the newcomers that come later.
  other.pass(20, {"b", "a2"});
  CHECK(only<Welcome>(other.receive("c3", registration("c"))).is_newcomer);
}

TEST_CASE("a run that does not pause goes on when its members and newcomers are enough") {
  Table table(kAll, 1, 3, {.lost_after_seconds = 5, .pause_seconds = 0}, 0);
  Crowd crowd(table);
  crowd.send("a", returning("a", 4));
  crowd.send("b2", registration("b"));
  crowd.send("c2", registration("c"));
  crowd.pass(3, {"a", "b2", "c2"});
  CHECK(crowd.welcomed() == Names{"a", "b2", "c2"});
  CHECK(receivers<PeerLostMessage>(crowd.seen).empty());
  CHECK(table.roster.failure().empty());
}

// The newcomer waits for a state that nobody has, and the others for a run without it.
TEST_CASE("a newcomer of a run whose members have all gone joins anew with the others") {
  auto table = blank(2);
  Crowd crowd(table);
  auto newcomer = returning("c", -1);
  newcomer.memory.reset();
  crowd.send("c", newcomer);
  crowd.send("a2", registration("a"));
  crowd.pass(30, {"c", "a2"});  // b may be a member
  CHECK(receivers<RefusedMessage>(crowd.seen).empty());
  const auto answers = table.receive("b2", registration("b"));
  REQUIRE(receivers<RefusedMessage>(answers) == Names{"c"});
  const auto& refused = std::get<RefusedMessage>(answers.front().message);
  CHECK(refused.is_left_behind);
  CHECK(refused.is_temporary);
  CHECK(receivers<Welcome>(table.receive("c2", registration("c"))) == Names{"a2", "b2", "c2"});
}

TEST_CASE("members that have gone again are not counted") {
  auto table = blank();
  Crowd crowd(table);
  crowd.send("a", returning("a", 4));
  crowd.pass(2, {"a"});
  crowd.send("b", returning("b", 4));
  crowd.pass(4, {"b"});
  crowd.send("c", returning("c", 4));
  crowd.pass(3, {"b", "c"});
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  CHECK(only<WaitingMessage>(table.receive("c", returning("c", 4))).missing == Names{"a"});
}

TEST_CASE("a member that takes part elsewhere is not counted, whatever was queued") {
  auto table = stand_by(0, 2);
  Crowd crowd(table);
  for (int i = 0; i < 3; ++i) {
    for (const auto& site : kAll) {
      crowd.send(site, returning(site, 4));
      only<UnknownSiteMessage>(table.receive(site, HeartbeatMessage{}));
    }
  }
  table.now_seconds += 0.6;
  for (const auto& site : kAll) only<UnknownSiteMessage>(table.receive(site, HeartbeatMessage{}));
  crowd.take(table.roster.tick(table.now_seconds));
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  CHECK(only<WaitingMessage>(table.receive("x", registration("a"))).missing == Names{"b", "c"});
}

TEST_CASE("a member that comes during a claim has to promise too") {
  auto table = blank(2);
  const auto promise = [&](const std::string& site) {
    auto message = returning(site, 4);
    message.term = table.roster.term();
    return message;
  };
  for (int i = 0; i < 7; ++i) {
    for (const auto* site : {"a", "b"}) table.receive(site, returning(site, 4));
    table.now_seconds += 1;
  }
  auto seen = table.roster.tick(table.now_seconds);
  REQUIRE(receivers<ClaimMessage>(seen) == Names{"a", "b"});
  only<WaitingMessage>(table.receive("a", promise("a")));
  only<ClaimMessage>(table.receive("c", returning("c", 4)));
  // Until then c may hear of a commit at its coordinator, and apply it.
  only<WaitingMessage>(table.receive("b", promise("b")));
  SECTION("it does") {
    CHECK(receivers<Welcome>(table.receive("c", promise("c"))) == kAll);
  }
  SECTION("it has gone again") {
    for (int i = 0; i < 3; ++i) {
      table.now_seconds += 1;
      seen = table.receive("a", promise("a"));
      if (table.roster.has_begun()) break;
      table.receive("b", promise("b"));
    }
    CHECK(receivers<Welcome>(seen) == Names{"a", "b"});
  }
}

TEST_CASE("a stand-by leaves a new process to the coordinator that may serve the run") {
  auto table = stand_by(0, 3);
  Crowd crowd(table);
  for (const auto* site : {"a", "c"}) crowd.send(site, returning(site, 4));
  crowd.pass(10, {"a", "c"});
  crowd.send("b2", registration("b"));
  crowd.pass(2, {"a", "c", "b2"});
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  crowd.pass(1, {"a", "c", "b2"});
  CHECK(crowd.welcomed() == Names{"a", "c", "b2"});
}

// c cannot reach the coordinator that serves a and b, and is behind. Then b is started again.
TEST_CASE("a member that was cut off does not take the run over with a new process of another") {
  auto table = stand_by(1, 2);
  Crowd crowd(table);
  crowd.send("c", returning("c", 4));
  crowd.pass(100, {"c"});
  crowd.send("b2", registration("b"));
  SECTION("it waits until the others have taken that one in") {
    crowd.pass(19, {"c", "b2"});
    CHECK(receivers<ClaimMessage>(crowd.seen).empty());
    only<UnknownSiteMessage>(table.receive("b2", HeartbeatMessage{}));
    crowd.pass(100, {"c"});
    CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  }
  SECTION("but not forever") {
    crowd.pass(24, {"c", "b2"});
    CHECK(crowd.welcomed() == Names{"c", "b2"});
  }
}

TEST_CASE("the members of the newest generation go on") {
  auto table = blank(2);
  Crowd crowd(table);
  auto newest = returning("b", 5, 4);
  newest.memory->members = {"b", "c"};
  crowd.send("a", returning("a", 4));
  crowd.send("b", newest);
  crowd.send("c", returning("c", 4));
  crowd.pass(1, kAll);
  CHECK(crowd.welcomed() == Names{"b", "c"});
  CHECK(only<RefusedMessage>(table.receive("a", returning("a", 4))).is_left_behind);
}

TEST_CASE("who is a member of another run does not return, and no newcomer brings one back") {
  auto table = blank();
  auto stranger = returning("a", 4);
  stranger.memory->members = {"a", "x"};
  CHECK_THAT(only<RefusedMessage>(table.receive("a", stranger)).message, Contains("another run"));
  auto twice = returning("a", 4);
  twice.memory->members = {"a", "a", "b"};
  only<RefusedMessage>(table.receive("a", twice));
  auto other = returning("a", 4);
  other.run = Json{{"name", "other"}};
  CHECK_THAT(only<RefusedMessage>(table.receive("a", other)).message, Contains("name"));
  // Newcomers have no state.
  Crowd crowd(table);
  for (const auto& site : kAll) {
    auto newcomer = returning(site, 4);
    newcomer.memory.reset();
    crowd.send(site, newcomer);
  }
  crowd.pass(10, kAll);
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  CHECK_FALSE(table.roster.has_begun());
}
