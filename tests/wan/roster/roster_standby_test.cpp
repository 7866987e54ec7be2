// Coordinators of a run that has several.
#include <set>

#include "tests/support/catch.h"
#include "tests/wan/roster/crowd.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("coordinators have terms of their own") {
  std::set<int64_t> seen;
  for (int64_t place = 0; place < kMostCoordinators; ++place) {
    const ServedRun run{.config = {}, .sites = kAll, .place = place};
    int64_t term = 0;
    for (int i = 0; i < 5; ++i) {
      const auto next = run.term_after(term);
      CHECK(next > term);
      CHECK(next - term <= kMostCoordinators);
      CHECK(run.term_after(next - 1) == next);
      CHECK(seen.insert(next).second);
      term = next;
    }
  }
  CHECK(ServedRun{.config = {}, .sites = kAll}.term_after(7) == 8);
}

TEST_CASE("a stand-by begins no run, and knows only its term") {
  auto table = stand_by(1, 2);
  for (const auto& site : kAll) table.receive(site, registration(site));
  CHECK_FALSE(table.roster.has_begun());
  CHECK(only<WaitingMessage>(table.receive("a", registration("a"))).missing.empty());
  auto first = stand_by(0, 2);
  first.join();
  CHECK_FALSE(first.roster.state().run);
  CHECK(first.roster.state().term == first.roster.term());
}

TEST_CASE("a stand-by claims a run in its turn, with enough of the sites") {
  auto table = stand_by(2, 2);
  Crowd crowd(table);
  crowd.send("a", returning("a", 4));
  crowd.pass(60, {"a"});
  crowd.send("b", returning("b", 4));
  // Two of three, after lost_after_seconds: c may be as near as b.
  crowd.pass(20, {"a", "b"});
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  crowd.pass(2, {"a", "b"});
  CHECK(crowd.welcomed() == Names{"a", "b"});
  // With all there, it is its turn after 6 heartbeats.
  auto next = stand_by(2, 2);
  Crowd all(next);
  for (const auto& site : kAll) all.send(site, returning(site, 4));
  all.pass(6, kAll);
  CHECK(receivers<ClaimMessage>(all.seen).empty());
  all.pass(1, kAll);
  CHECK(all.welcomed() == kAll);
  CHECK(next.roster.term() % kMostCoordinators == 2);
  CHECK(next.roster.term() > 7);
}

TEST_CASE("each takeover begins generations above all that the sites know, and of its own") {
  std::set<int64_t> seen;
  for (int64_t place = 0; place < 3; ++place) {
    auto table = stand_by(place, 2);
    Crowd crowd(table);
    for (const auto& site : kAll) crowd.send(site, returning(site, 4));
    crowd.pass(8, kAll);
    CHECK(seen.insert(crowd.view().generation).second);
  }
  // Of the newest one, only a newcomer is left.
  auto table = stand_by(0, 2);
  Crowd crowd(table);
  auto newcomer = returning("b", 4, 80002);
  newcomer.memory.reset();
  crowd.send("a", returning("a", 4));
  crowd.send("b", newcomer);
  crowd.pass(23, {"a", "b"});
  CHECK(crowd.welcomed() == Names{"a"});
  CHECK(crowd.view().generation > 80002);
}

TEST_CASE("a claim ends when too few sites keep to it") {
  auto table = stand_by(0, 3);
  Crowd crowd(table);
  for (const auto& site : kAll) crowd.last[site] = returning(site, 4);
  for (int i = 0; i < 2; ++i) {
    for (const auto& site : kAll) table.receive(site, returning(site, 4));
    table.now_seconds += 1;
  }
  // It asks, but c has heard its own coordinator again.
  auto promise = returning("a", 4);
  promise.term = table.roster.term();
  CHECK(receivers<ClaimMessage>(table.receive("b", returning("b", 4))) == Names{"b"});
  only<WaitingMessage>(table.receive("a", promise));
  table.now_seconds += 3;
  for (int i = 0; i < 2; ++i) {
    table.receive("a", promise);
    table.receive("b", returning("b", 4));
    table.roster.tick(table.now_seconds);
    CHECK_FALSE(table.roster.has_begun());
    table.now_seconds += 1;
  }
  CHECK(only<WaitingMessage>(table.receive("b", returning("b", 4))).missing == Names{"c"});
}

TEST_CASE("a coordinator whose sites another one claims waits its turn anew") {
  auto table = stand_by(1, 2);
  Crowd crowd(table);
  for (const auto& site : kAll) crowd.send(site, returning(site, 4));
  crowd.pass(2, kAll);
  auto elsewhere = returning("a", 4);
  elsewhere.term = 32;
  crowd.send("a", elsewhere);
  CHECK(table.roster.term() == 33);
  crowd.pass(2, kAll);
  CHECK(receivers<ClaimMessage>(crowd.seen).empty());
  crowd.pass(1, kAll);
  CHECK(crowd.welcomed() == kAll);
  CHECK(crowd.view().term == 33);
}

TEST_CASE("a coordinator that ends sends its sites to the others") {
  auto table = stand_by(0, 2);
  table.join();
  CHECK(receivers<UnknownSiteMessage>(table.roster.hand_over("a stop")) == kAll);
  CHECK(table.roster.is_superseded());
  CHECK(table.receive("a", arrival(1)).empty());
}

TEST_CASE("a stand-by hears when the run has ended") {
  auto table = stand_by(1, 2);
  only<GoodbyeMessage>(table.receive("a", LeaveMessage{Outcome::kDone, ""}));
  CHECK_FALSE(table.roster.is_over());
  table.now_seconds += 15;
  only<UnknownSiteMessage>(table.receive("b", HeartbeatMessage{}));
  table.pass(15, {});
  CHECK_FALSE(table.roster.is_over());
  table.pass(6, {});
  CHECK(table.roster.is_over());
  table.receive("a", registration("a"));  // the sites are started again
  CHECK_FALSE(table.roster.is_over());
}
