#include "wan/roster/roster.h"

#include "tests/wan/roster/table.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

TEST_CASE("sites wait for each other and are welcomed together") {
  Table table({"a", "b", "c"});
  CHECK(only<WaitingMessage>(table.receive("2", registration("b"))).missing == Names{"a", "c"});
  CHECK(only<WaitingMessage>(table.receive("1", registration("a"))).missing == Names{"c"});
  CHECK(only<WaitingMessage>(table.receive("2", registration("b"))).missing == Names{"c"});
  CHECK_FALSE(table.roster.has_begun());
  const auto messages = table.receive("3", registration("c"));
  CHECK(receivers<Welcome>(messages) == Names{"1", "2", "3"});
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& welcome = std::get<Welcome>(messages[i].message);
    CHECK(welcome.site_id == static_cast<int64_t>(i));
    CHECK(welcome.sites == Names{"a", "b", "c"});
    CHECK(welcome.run == run_of({"a", "b", "c"}));
    CHECK(welcome.generation == 1);
    CHECK(welcome.start_syncs == 0);
  }
  CHECK(only<Welcome>(table.receive("2", registration("b"))).site_id == 1);
}

TEST_CASE("one site alone is welcomed at once and needs nobody") {
  Table table({"a"});
  only<Welcome>(table.receive("a", registration("a")));
  only<Go>(table.receive("a", arrival(1)));
  CHECK(only<CommittedMessage>(table.receive("a", ballot(1))).round == 1);
}

TEST_CASE("who may not join is refused with the reason") {
  Table table({"a", "b"});
  auto first = registration("a");
  first.facts = {{"data_digest", "11"}};
  table.receive("a", first);

  auto other_run = registration("b");
  other_run.facts = first.facts;
  other_run.run = run_of({"a", "b"});
  (*other_run.run)["outer"]["rounds"] = 77;
  auto other_data = registration("b");
  other_data.facts = {{"data_digest", "22"}};
  auto other_resume = registration("b");
  other_resume.facts = first.facts;
  other_resume.resume = Resume::kAlways;
  struct Row {
    RegisterMessage message;
    std::string reason;
    bool is_temporary = false;
  };
  const std::vector<Row> table_of_refusals = {
      {registration("x"), "site x is not in the run, whose sites are a, b"},
      {registration("a"), "site a has registered already", true},
      {other_run, "outer.rounds: 77 here, 10 there"},
      {other_data, "site b (here) does not fit site a (there): data_digest"},
      {other_resume, "site b resumes from a checkpoint and site a does not"},
  };
  for (const auto& row : table_of_refusals) {
    const auto refusal = only<RefusedMessage>(table.receive("new", row.message));
    CHECK_THAT(refusal.message, Catch::Contains(row.reason));
    CHECK(refusal.is_temporary == row.is_temporary);
  }
  CHECK_FALSE(table.roster.has_begun());

  auto fitting = registration("b");
  fitting.facts = first.facts;
  fitting.run = run_of({"a", "b"});
  CHECK(receivers<Welcome>(table.receive("b", fitting)) == Names{"a", "b"});
  const auto late = only<RefusedMessage>(table.receive("late", registration("b")));
  CHECK_THAT(late.message, Catch::Contains("the run has begun"));
  CHECK(late.is_temporary);
}

TEST_CASE("a site that goes away while others join frees its place") {
  Table table({"a", "b"});
  table.receive("old", registration("a"));
  SECTION("by silence") {
    CHECK(table.pass(6, {}).empty());
  }
  SECTION("by leaving") {
    only<GoodbyeMessage>(table.receive("old", LeaveMessage{Outcome::kInterrupted, ""}));
  }
  CHECK(only<WaitingMessage>(table.receive("new", registration("a"))).missing == Names{"b"});
  CHECK(receivers<Welcome>(table.receive("b", registration("b"))) == Names{"new", "b"});
}

TEST_CASE("a get is answered when the key exists") {
  Table table({"a", "b", "c"});
  table.join();
  CHECK(table.receive("b", GetMessage{"k"}).empty());
  CHECK(table.receive("c", GetMessage{"k"}).empty());
  CHECK(table.receive("b", GetMessage{"k"}).empty());
  const auto messages = table.receive("a", PutMessage{"k", "00ff"});
  CHECK(receivers<StoredMessage>(messages) == Names{"a"});
  CHECK(receivers<ValueMessage>(messages) == Names{"b", "c"});
  CHECK(only<ValueMessage>(table.receive("a", GetMessage{"k"})).value == "00ff");
  only<StoredMessage>(table.receive("b", PutMessage{"k", "00ff"}));
  CHECK_THAT(only<ErrorMessage>(table.receive("b", PutMessage{"k", "11"})).message,
             Catch::Contains("k is written twice"));
}

TEST_CASE("rounds go on one after the other when all arrive and all vote") {
  Table table({"a", "b"});
  table.join();
  for (int64_t round = 1; round <= 5; ++round) {
    CHECK(table.receive("b", ArriveMessage{1, round, 0, {{50, 8, 500}}, "aa"}).empty());
    const auto go = table.receive("a", ArriveMessage{1, round, 0, {{100, 4, 900}}, "aa"});
    CHECK(receivers<Go>(go) == Names{"a", "b"});
    CHECK(std::get<Go>(go[0].message).round == round);
    CHECK(std::get<Go>(go[0].message).contributions ==
          std::vector<Contribution>{{{100, 4, 900}}, {{50, 8, 500}}});
    CHECK(table.receive("a", ballot(round)).empty());
    CHECK(receivers<CommittedMessage>(table.receive("b", ballot(round))) == Names{"a", "b"});
  }
}

TEST_CASE("sites may measure each other before the first sync, all of them") {
  for (const int64_t fragments : {1, 4}) {
    Table table({"a", "b"});
    table.join();
    const ArriveMessage measured{1, 0, 0, {.timing = {.steps = 4, .step_seconds = 0.25}}, "aa"};
    CHECK(table.receive("a", measured).empty());
    const auto go = table.receive("b", measured);
    CHECK(receivers<Go>(go) == Names{"a", "b"});
    CHECK(std::get<Go>(go[0].message).contributions ==
          std::vector<Contribution>(2, measured.contribution));
    CHECK(only<Go>(table.receive("a", measured)).round == 0);  // the answer was lost
    CHECK(table.receive("b", VoteMessage{1, 0, 0, "aa"}).empty());
    CHECK(receivers<CommittedMessage>(table.receive("a", VoteMessage{1, 0, 0, "aa"})) ==
          Names{"a", "b"});
    only<ErrorMessage>(table.receive("a", measured));
    auto first = arrival(1);
    first.contribution.fragments = fragments;
    CHECK(table.receive("a", first).empty());
    CHECK(receivers<Go>(table.receive("b", first)) == Names{"a", "b"});
  }
  Table table({"a", "b"});
  table.join();
  table.receive("a", arrival(1));
  const auto refused = only<ErrorMessage>(table.receive("b", ArriveMessage{1, 0, 0, {}, "aa"}));
  CHECK_THAT(refused.message, Catch::Contains("the measuring sync"));
}

TEST_CASE("a request whose answer was lost is answered again") {
  Table table({"a", "b"});
  table.join();
  table.receive("a", arrival(1));
  CHECK(table.receive("a", arrival(1)).empty());
  table.receive("b", arrival(1));
  CHECK(only<Go>(table.receive("a", arrival(1))).round == 1);
  table.receive("a", ballot(1));
  CHECK(table.receive("a", ballot(1)).empty());
  table.receive("b", ballot(1));
  CHECK(only<CommittedMessage>(table.receive("a", ballot(1))).round == 1);
  table.receive("a", arrival(2));
  CHECK(only<CommittedMessage>(table.receive("b", ballot(1))).round == 1);
  CHECK(receivers<Go>(table.receive("b", arrival(2))) == Names{"a", "b"});
}

TEST_CASE("messages of a round that is not open are answered with an error") {
  Table table({"a", "b"});
  only<UnknownSiteMessage>(table.receive("a", arrival(1)));
  table.receive("a", registration("a"));
  // It is a member of another run, and does not begin one here.
  only<UnknownSiteMessage>(table.receive("a", arrival(1)));
  only<UnknownSiteMessage>(table.receive("a", ballot(-1)));
  only<WaitingMessage>(table.receive("b", registration("b")));
  table.receive("a", registration("a"));
  table.run_round(1);
  table.run_round(2);
  const std::vector<SiteMessage> stale = {
      arrival(1),
      arrival(2),
      arrival(4),
      ballot(1),
      ballot(3),
      ballot(4),
      ArriveMessage{0, 2, 0, {}, "aa"},
      VoteMessage{2, 1, 0, "bb"},
  };
  for (const auto& message : stale) only<ErrorMessage>(table.receive("a", message));
  table.run_round(3);
  CHECK(table.roster.failure().empty());
}

TEST_CASE("weights that differ at the start of a round stop the run naming the site") {
  Table table({"a", "b", "c"});
  table.join();
  table.run_round(1);
  table.receive("a", arrival(2));
  table.receive("b", arrival(2, "other"));
  const auto messages = table.receive("c", arrival(2));
  CHECK(receivers<StopMessage>(messages) == Names{"a", "b", "c"});
  CHECK(std::get<StopMessage>(messages[0].message).reason ==
        "theta_global differs before the sync of round 2: b (other)");
  only<StopMessage>(table.receive("a", arrival(2)));
}

TEST_CASE("weights that would differ after the exchange stop the run before it counts") {
  Table table({"a", "b"});
  table.join();
  table.receive("a", arrival(1));
  table.receive("b", arrival(1));
  table.receive("a", ballot(1, "b1"));
  const auto messages = table.receive("b", ballot(1, "b2"));
  CHECK(receivers<StopMessage>(messages) == Names{"a", "b"});
  CHECK_THAT(table.roster.failure(), Catch::Contains("a (b1), b (b2)"));
  CHECK(receivers<CommittedMessage>(messages).empty());
  only<GoodbyeMessage>(table.receive("a", LeaveMessage{Outcome::kFailed, ""}));
  CHECK_FALSE(table.roster.is_over());
  only<GoodbyeMessage>(table.receive("b", LeaveMessage{Outcome::kFailed, ""}));
  CHECK(table.roster.is_over());
}

TEST_CASE("a heartbeat is answered with the coordinator's time") {
  Table table({"a"});
  table.join();
  const auto ack = only<HeartbeatAckMessage>(table.receive("a", HeartbeatMessage{7.5, 0, 0, ""}));
  CHECK(ack.sent_seconds == 7.5);
  CHECK(ack.coordinator_seconds == table.now_seconds);
}

TEST_CASE("a site that falls silent is lost once and the others are told") {
  Table table({"a", "b", "c"});
  table.join();
  table.receive("b", HeartbeatMessage{1000, 3, 12, "training"});
  CHECK(table.pass(5, {"a", "c"}).empty());
  const auto messages = table.pass(1, {"a", "c"});
  CHECK(receivers<PeerLostMessage>(messages) == Names{"a", "c"});
  const auto lost = std::get<PeerLostMessage>(messages[0].message);
  CHECK(lost.site == "b");
  CHECK(lost.reason == "silent for 6.0 s; last heard of in round 3, step 12: training");
  CHECK(table.pass(20, {"a", "c"}).empty());
  CHECK(table.pass(20, {"a"}).empty());
  CHECK(table.roster.failure() == "site b: " + lost.reason);

  const auto beat = table.receive("a", HeartbeatMessage{0, 0, 0, ""});
  CHECK(receivers<HeartbeatAckMessage>(beat) == Names{"a"});
  CHECK(receivers<PeerLostMessage>(beat) == Names{"a"});
  only<PeerLostMessage>(table.receive("a", arrival(1)));
  CHECK_THAT(only<UnknownSiteMessage>(table.receive("b", HeartbeatMessage{0, 0, 0, ""})).message,
             Catch::Contains("counts as lost"));
}

TEST_CASE("any message is a sign of life and arrivals wait for hours") {
  Table table({"a", "b"});
  table.join();
  table.receive("a", arrival(1));
  CHECK(table.pass(3 * 3600, {"a", "b"}).empty());
  CHECK(receivers<Go>(table.receive("b", arrival(1))) == Names{"a", "b"});
  for (int i = 0; i < 10; ++i) {
    table.now_seconds += 4;
    table.receive("a", ballot(1));
    table.receive("b", GetMessage{"nothing"});
    CHECK(table.roster.tick(table.now_seconds).empty());
  }
}

TEST_CASE("a site that leaves before the run is over is lost to the others") {
  struct Row {
    Outcome outcome;
    std::string message, reason;
  };
  const std::vector<Row> rows = {
      {Outcome::kInterrupted, "", "it left the run: interrupted"},
      {Outcome::kPeerLost, "c is silent", "it left the run: peer_lost: c is silent"},
      {Outcome::kFailed, "loss is nan", "it left the run: failed: loss is nan"},
      {Outcome::kDone, "", "it left the run: done"},
  };
  for (const auto& row : rows) {
    Table table({"a", "b"});
    table.join();
    table.receive("b", arrival(1));
    const auto messages = table.receive("a", LeaveMessage{row.outcome, row.message});
    CHECK(receivers<GoodbyeMessage>(messages) == Names{"a"});
    CHECK(receivers<PeerLostMessage>(messages) == Names{"b"});
    CHECK(table.roster.failure() == "site a: " + row.reason);
    only<GoodbyeMessage>(table.receive("a", LeaveMessage{row.outcome, row.message}));
  }
}

TEST_CASE("a site that is done with the run is missed only if another round is begun") {
  Table table({"a", "b"});
  table.join();
  table.run_round(1);
  only<GoodbyeMessage>(table.receive("a", LeaveMessage{Outcome::kDone, ""}));
  CHECK(table.pass(60, {"b"}).empty());
  CHECK_FALSE(table.roster.is_over());
  SECTION("the other is done as well") {
    only<GoodbyeMessage>(table.receive("b", LeaveMessage{Outcome::kDone, ""}));
    CHECK(table.roster.is_over());
    CHECK(table.roster.failure().empty());
  }
  SECTION("the other goes on") {
    const auto lost = only<PeerLostMessage>(table.receive("b", arrival(2)));
    CHECK(lost.site == "a");
  }
}

TEST_CASE("a round is summed up when all sites have sent their metrics of it") {
  Table table({"a", "b"});
  table.join();
  table.receive("a", MetricsMessage{1, 3.0, 100, 9, 1});
  CHECK(table.roster.round_summary().empty());
  table.receive("b", MetricsMessage{1, 2.0, 300, 6, 4});
  CHECK(table.roster.round_summary() ==
        "round 1: training loss 2.2500 over 400 tokens, idle 25.0 %");
  table.receive("b", MetricsMessage{2, 2.0, 300, 6, 4});
  CHECK_THAT(table.roster.round_summary(), Catch::StartsWith("round 1"));
  table.receive("a", MetricsMessage{2, 2.0, 0, 0, 0});
  CHECK_THAT(table.roster.round_summary(), Catch::StartsWith("round 2: training loss 2.0000"));
}

TEST_CASE("every site is handed the profiles of all") {
  Table table({"a", "b"});
  RegisterMessage first;
  first.site = "a";
  RegisterMessage second;
  second.site = "b";
  second.profile = Json{{"site", "b"}};
  table.receive("a", first);
  const auto outgoing = table.receive("b", second);
  REQUIRE(outgoing.size() == 2);
  for (const auto& sent : outgoing) {
    const auto& welcome = std::get<Welcome>(sent.message);
    REQUIRE(welcome.first_sites.size() == 2);
    CHECK(welcome.first_sites[0].site == "a");
    CHECK(welcome.first_sites[0].profile.is_null());
    CHECK(welcome.first_sites[1].site == "b");
    CHECK(welcome.first_sites[1].profile == Json{{"site", "b"}});
  }
}

TEST_CASE("strangers are told that they are unknown and change nothing") {
  Table table({"a"});
  only<UnknownSiteMessage>(table.receive("x", HeartbeatMessage{}));
  only<UnknownSiteMessage>(table.receive("x", PutMessage{"k", ""}));
  only<UnknownSiteMessage>(table.receive("x", ballot(1)));
  only<GoodbyeMessage>(table.receive("x", LeaveMessage{}));
  CHECK_FALSE(table.roster.is_over());
  table.join();
  only<UnknownSiteMessage>(table.receive("x", arrival(1)));
  CHECK(table.receive("a", GetMessage{"k"}).empty());
}

}  // namespace
}  // namespace farstep::wan
