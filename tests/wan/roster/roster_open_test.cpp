// Runs that sites may join whose names they do not know.
#include "tests/wan/roster/crowd.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

const FetchMessage kFetch{"10.0.0.3", 4000, "token"};

// May have three sites.
Table open_table(int64_t min_sites = 1, const Names& named = {"b"}) {
  return Table({.config = run_of(named), .sites = named, .min_sites = min_sites, .max_sites = 3},
               {.lost_after_seconds = 5, .pause_seconds = 60});
}

// Site c comes while a and b are in round 1 of generation 1, and joins them at round 2.
Table with_c() {
  auto table = open_table();
  table.receive("a", registration("a"));
  table.receive("b", registration("b"));
  table.receive("c", registration("c"));
  table.receive("c", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot(1));
  table.receive("b", OfferMessage{"token", 1});
  table.receive("c", arrival(2, "aa", 1));
  return table;
}

}  // namespace

TEST_CASE("an open run begins when all named sites and enough others are there") {
  auto table = open_table(2);
  CHECK(only<WaitingMessage>(table.receive("b", registration("b"))).missing ==
        Names{"1 of any name"});
  const auto begun = table.receive("a", registration("a"));
  CHECK(receivers<Welcome>(begun) == Names{"b", "a"});
  const auto welcome = std::get<Welcome>(begun.back().message);
  CHECK(welcome.sites == Names{"b", "a"});  // the named one first
  CHECK(welcome.site_id == 1);
  CHECK_FALSE(welcome.is_newcomer);
  REQUIRE(welcome.first_sites.size() == 2);
  CHECK(welcome.first_sites[1].site == "a");

  auto waiting = open_table();
  CHECK(only<WaitingMessage>(waiting.receive("c", registration("c"))).missing == Names{"b"});
  waiting.pass(10, {});  // it has gone again
  CHECK(receivers<Welcome>(waiting.receive("b", registration("b"))) == Names{"b"});
}

TEST_CASE("a run that names nobody begins with as many sites as it needs") {
  auto table = open_table(2, {});
  CHECK(only<WaitingMessage>(table.receive("z", registration("z"))).missing ==
        Names{"1 of any name"});
  const auto begun = table.receive("a", registration("a"));
  CHECK(std::get<Welcome>(begun.front().message).sites == Names{"a", "z"});
}

TEST_CASE("a site that an open run does not name joins it, and leaves, and another one comes") {
  auto table = with_c();
  CHECK(table.roster.state().run->progress.members == Names{"b", "a", "c"});
  // All places are taken, also while one that was lost keeps its place.
  const auto refused = only<RefusedMessage>(table.receive("d", registration("d")));
  CHECK(refused.is_temporary);
  CHECK_THAT(refused.message, Contains("3 sites already, its max_sites"));
  table.receive("c", LeaveMessage{Outcome::kInterrupted, ""});
  CHECK(table.roster.state().run->progress.members == Names{"b", "a"});
  CHECK(only<Welcome>(table.receive("d", registration("d"))).is_newcomer);
}

TEST_CASE("an open run takes a name only if it can be one, and a closed run none that it lacks") {
  auto table = open_table();
  for (const auto* name : {"../x", "a b", ""}) {
    auto message = registration(name);
    CHECK_THAT(only<RefusedMessage>(table.receive("x", message)).message, Contains("no name"));
  }
  CHECK_FALSE(is_site_name(std::string(101, 'a')));
  Table closed({"a", "b"});
  CHECK_THAT(only<RefusedMessage>(closed.receive("c", registration("c"))).message,
             Contains("not in the run, whose sites are a, b"));
}

TEST_CASE("a site that comes after the end of an open run hears how the run ended") {
  auto done = open_table(1, {});
  done.receive("a", registration("a"));
  done.receive("a", arrival(1));
  done.receive("a", ballot(1));
  done.receive("a", LeaveMessage{});
  REQUIRE(done.roster.is_over());
  const auto late = only<RefusedMessage>(done.receive("b", registration("b")));
  CHECK_THAT(late.message, Contains("the run is over: its sites have done all rounds and left") &&
                               Contains("raise outer.rounds"));
  CHECK(late.is_temporary);

  auto failed = open_table(1, {});
  failed.receive("a", registration("a"));
  failed.receive("a", LeaveMessage{Outcome::kFailed, "no disk"});
  CHECK_THAT(only<RefusedMessage>(failed.receive("b", registration("b"))).message,
             Contains("the run is over: site a: it left the run: failed: no disk") &&
                 Contains("--resume"));
}

TEST_CASE("a site that was left behind hears so, though the run does not name it") {
  auto table = with_c();
  table.pass(10, {"a", "b"});
  auto message = registration("c");
  message.generation = 2;
  CHECK(only<RefusedMessage>(table.receive("c", message)).is_left_behind);
  message = registration("unheard-of");
  message.generation = 2;
  CHECK(only<RefusedMessage>(table.receive("d", message)).is_left_behind);
}

TEST_CASE("sites that come and go with other names are forgotten") {
  auto table = open_table();
  table.receive("b", registration("b"));
  for (int i = 0; i < 100; ++i) {
    const auto name = "site-" + std::to_string(i);
    REQUIRE(only<Welcome>(table.receive(name, registration(name))).is_newcomer);
    table.receive(name, LeaveMessage{Outcome::kInterrupted, ""});
  }
  CHECK(table.roster.state().run->seats.size() <= 2);
}

TEST_CASE("a restarted coordinator goes on with sites that the run does not name") {
  auto table = with_c();
  const auto state = table.roster.state();
  state.require_fits(table.run);
  Table next(table, state);
  for (const auto* site : {"a", "b"}) next.receive(site, arrival(2, "aa", 2));
  CHECK(receivers<Go>(next.receive("c", arrival(2, "aa", 2))) == Names{"b", "a", "c"});
  // Another run's coordinator does not.
  auto closed = table.run;
  closed.max_sites.reset();
  CHECK_THROWS_AS(state.require_fits(closed), DataError);
}

TEST_CASE("a coordinator without a state goes on with sites that the run does not name") {
  auto table = open_table(2);
  Crowd crowd(table);
  for (const auto* site : {"b", "x"}) {
    auto message = returning(site, 5);
    message.memory = RunMemory{{"b", "x"}, {{"b", nullptr}, {"y", Json{{"of", "y"}}}}, {}};
    crowd.send(site, message);
  }
  crowd.pass(5, {"b", "x"});
  CHECK(crowd.welcomed() == Names{"b", "x"});
  CHECK(crowd.view().sites == Names{"b", "x"});
  // What newcomers need is known.
  const auto welcome = only<Welcome>(table.receive("c", registration("c")));
  REQUIRE(welcome.first_sites.size() == 2);
  CHECK(welcome.first_sites[1].profile == Json{{"of", "y"}});
}

}  // namespace farstep::wan
