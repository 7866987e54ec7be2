// Sites that are lost while the others go on.
#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// Three sites in the middle of round 3, two of which have arrived.
Table in_round_3(int64_t min_sites = 1) {
  Table table({"a", "b", "c"}, 1, min_sites);
  table.join();
  table.run_round(1);
  table.run_round(2);
  table.receive("a", arrival(3));
  table.receive("b", arrival(3));
  return table;
}

// What a site hears of the newest generation when it beats the heart of an older one.
ViewMessage view_of(Table& table, const std::string& site) {
  const auto answers = table.receive(site, HeartbeatMessage{0, 0, 0, "", 1});
  REQUIRE(receivers<ViewMessage>(answers) == Names{site});
  return std::get<ViewMessage>(answers.back().message);
}

}  // namespace

TEST_CASE("the others go on without a site that falls silent, in a new generation") {
  auto table = in_round_3();
  const auto told = table.pass(10, {"a", "b"});
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  const auto view = view_of(table, "a");
  CHECK(view.generation == 2);
  CHECK(view.sites == Names{"a", "b"});
  CHECK(view.lost == "c");
  CHECK(view.committed_round == 2);
  CHECK(table.roster.failure().empty());
  CHECK_THAT(table.roster.newest_change(), Catch::StartsWith("site c: silent"));

  // What they had sent for the open sync counts no more: both arrive once more.
  CHECK(receivers<Go>(table.receive("a", arrival(3, "aa", 2))).empty());
  const auto answers = table.receive("b", arrival(3, "aa", 2));
  CHECK(receivers<Go>(answers) == Names{"a", "b"});
  const auto go = std::get<Go>(answers.front().message);
  CHECK(go.generation == 2);
  CHECK(go.sites == Names{"a", "b"});
  CHECK(go.contributions.size() == 2);
  table.receive("a", ballot(3, "bb", 2));
  CHECK(receivers<CommittedMessage>(table.receive("b", ballot(3, "bb", 2))) == Names{"a", "b"});
}

TEST_CASE("requests of an older generation are answered with the new one") {
  auto table = in_round_3();
  table.pass(10, {"a", "b"});
  CHECK(only<ViewMessage>(table.receive("a", arrival(3))).generation == 2);
  CHECK(only<ViewMessage>(table.receive("a", ballot(3))).generation == 2);
  CHECK(only<ViewMessage>(table.receive("a", SuspectMessage{1, "c"})).generation == 2);
  // One who knows it is only answered as always.
  const HeartbeatMessage beat{table.now_seconds, 0, 0, "", 2};
  only<HeartbeatAckMessage>(table.receive("a", beat));
}

TEST_CASE("a sync on which all have voted stays committed when a site is lost then") {
  auto table = in_round_3();
  table.receive("c", arrival(3));
  for (const auto* site : {"a", "b", "c"}) table.receive(site, ballot(3));
  table.pass(10, {"a", "b"});
  CHECK(view_of(table, "a").committed_round == 3);
  // The answer to b's vote was lost.
  const auto answer = only<CommittedMessage>(table.receive("b", ballot(3)));
  CHECK((answer.generation == 1 && answer.round == 3));
}

TEST_CASE("a sync on which one has not voted is not committed by the vote of the others") {
  auto table = in_round_3();
  table.receive("c", arrival(3));
  table.receive("a", ballot(3));
  table.receive("b", ballot(3));
  table.pass(10, {"a", "b"});
  CHECK(view_of(table, "a").committed_round == 2);
  CHECK(only<ViewMessage>(table.receive("a", ballot(3))).committed_round == 2);
}

TEST_CASE("a site goes on alone, and with too few sites the run ends") {
  for (const int64_t min_sites : {1, 2}) {
    auto table = in_round_3(min_sites);
    table.pass(10, {"a", "b"});
    const auto told = table.pass(10, {"a"});
    if (min_sites == 1) {
      CHECK(receivers<ViewMessage>(told) == Names{"a"});
      CHECK(view_of(table, "a").sites == Names{"a"});
      CHECK(receivers<Go>(table.receive("a", arrival(3, "aa", 3))) == Names{"a"});
      CHECK(receivers<CommittedMessage>(table.receive("a", ballot(3, "bb", 3))) == Names{"a"});
    } else {
      CHECK(receivers<PeerLostMessage>(told) == Names{"a"});
      CHECK_THAT(table.roster.failure(), Catch::StartsWith("site b: silent"));
    }
  }
}

TEST_CASE("a suspect that is silent is lost after few heartbeats, one that lives is not") {
  auto table = in_round_3();
  table.receive("c", HeartbeatMessage{0, 0, 0, "", 1});
  table.receive("a", SuspectMessage{1, "c"});
  CHECK(receivers<ViewMessage>(table.pass(2, {"a", "b"})).empty());
  CHECK(receivers<ViewMessage>(table.pass(1, {"a", "b"})) == Names{"a", "b"});
  // b answers, and no exchange is under way that would need new connections.
  table.receive("a", SuspectMessage{2, "b"});
  CHECK(table.pass(60, {"a", "b"}).empty());
}

TEST_CASE("a site whose connection to the coordinator broke is lost unless it is heard again") {
  Table table({"a", "b", "c"}, 1, 1);
  table.join();
  table.roster.on_broken("a", table.now_seconds);
  table.roster.on_broken("nobody's", table.now_seconds);
  table.receive("a", HeartbeatMessage{table.now_seconds, 0, 0, ""});
  table.roster.on_broken("c", table.now_seconds);
  CHECK(table.pass(2, {"b"}).empty());
  CHECK(receivers<ViewMessage>(table.pass(1, {"b"})) == Names{"a", "b"});
  // The connection of "a" was made again, so only silence counts.
  CHECK(table.pass(2, {"b"}).empty());
  CHECK(receivers<ViewMessage>(table.pass(1, {"b"})) == Names{"b"});
}

TEST_CASE("a site whose line is closed counts as lost after few heartbeats, whatever comes late") {
  Table table({"a", "b", "c"}, 1, 1);
  table.join();
  table.roster.on_closed_line("c", table.now_seconds);
  // Sent before the end, and read after it.
  table.receive("c", HeartbeatMessage{table.now_seconds, 0, 0, ""});
  table.roster.on_closed_line("c", table.now_seconds);
  table.roster.on_closed_line("nobody", table.now_seconds);
  CHECK(table.pass(2, {"a", "b"}).empty());
  CHECK(receivers<ViewMessage>(table.pass(1, {"a", "b"})) == Names{"a", "b"});
  CHECK(table.roster.connected_sites() == Names{"a", "b"});
}

// After an outage the ends of old connections come before the site has made new ones.
TEST_CASE("a connection that breaks after a silence shows a line that was cut") {
  Table table({"a", "b", "c"}, 1, 1, {.lost_after_seconds = 45, .pause_seconds = 0});
  table.join();
  CHECK(table.pass(30, {"a", "b"}).empty());
  table.roster.on_broken("c", table.now_seconds);
  table.roster.on_closed_line("c", table.now_seconds);
  table.receive("a", SuspectMessage{1, "c"});
  CHECK(table.pass(15, {"a", "b"}).empty());
  CHECK(receivers<ViewMessage>(table.pass(1, {"a", "b"})) == Names{"a", "b"});
}

TEST_CASE("living members begin an exchange anew in which a connection broke") {
  const Names all = {"a", "b", "c"};
  for (const int64_t min_sites : {1, 3}) {
    Table table(all, 1, min_sites);
    table.join();
    table.run_round(1);
    for (const auto& site : all) table.receive(site, arrival(2));
    table.receive("b", ballot(2));  // whose connections are whole
    table.receive("a", SuspectMessage{1, "b"});
    CHECK(table.pass(1, all).empty());
    const auto told = table.pass(1, all);
    CHECK(receivers<ViewMessage>(told) == all);
    const auto view = std::get<ViewMessage>(told.front().message);
    CHECK(view.sites == all);
    CHECK(view.lost.empty());
    CHECK(view.lost_generation == 2);
    CHECK(view.reason == "a connection of site a to site b broke");
    CHECK(only<ViewMessage>(table.receive("a", SuspectMessage{1, "b"})).generation == 2);
    table.receive("a", arrival(2, "aa", 2));
    table.receive("b", arrival(2, "aa", 2));
    CHECK(receivers<Go>(table.receive("c", arrival(2, "aa", 2))) == all);
    table.receive("a", ballot(2, "bb", 2));
    table.receive("b", ballot(2, "bb", 2));
    CHECK(receivers<CommittedMessage>(table.receive("c", ballot(2, "bb", 2))) == all);
    CHECK(table.pass(60, all).empty());
  }
}

TEST_CASE("a connection that stays broken ends like the loss of the accused site") {
  const Names all = {"a", "b", "c"};
  for (const int64_t min_sites : {2, 3}) {
    Table table(all, 1, min_sites);
    table.join();
    const double start_seconds = table.now_seconds;
    int64_t generation = 1;
    std::vector<Outgoing> told;
    while (told.empty() || std::holds_alternative<ViewMessage>(told.front().message)) {
      for (const auto& site : all) table.receive(site, arrival(1, "aa", generation));
      table.receive("a", SuspectMessage{generation, "b"});
      told = table.pass(4, all);
      REQUIRE(told.size() >= 2);
      const auto* view = std::get_if<ViewMessage>(&told.front().message);
      if (view == nullptr || view->sites != all) break;
      CHECK(view->generation == ++generation);
    }
    const double seconds = table.now_seconds - start_seconds;
    // With enough sites left, only as long as two attempts may take.
    const Deadlines usual;
    CHECK(seconds > (min_sites == 2 ? usual.connect_seconds : usual.join_seconds));
    CHECK(seconds < (min_sites == 2 ? usual.connect_seconds : usual.join_seconds) + 12);
    if (min_sites == 2) {
      CHECK(std::get<ViewMessage>(told.front().message).sites == Names{"a", "c"});
      CHECK(std::get<ViewMessage>(told.front().message).lost == "b");
    } else {
      CHECK(std::get<PeerLostMessage>(told.front().message).site == "b");
    }
  }
}

// Whom the members lose whose exchanges go on to fail, by their suspicions in this order.
std::string lost_by(const std::vector<std::pair<std::string, std::string>>& suspicions,
                    std::optional<std::string> host = {}) {
  Table table({.config = run_of(kAll), .sites = kAll, .min_sites = 1, .host = std::move(host)},
              kTableDeadlines);
  table.join();
  for (int64_t generation = 1; generation < 1000; ++generation) {
    for (const auto& site : kAll) table.receive(site, arrival(1, "aa", generation));
    for (const auto& [member, suspect] : suspicions) {
      table.receive(member, SuspectMessage{generation, suspect});
    }
    const auto told = table.pass(4, kAll);
    REQUIRE_FALSE(told.empty());
    const auto view = std::get<ViewMessage>(told.front().message);
    if (view.sites != kAll) return view.lost;
  }
  return "nobody";
}

TEST_CASE("of links that stay broken the site goes that most others do not reach") {
  CHECK(lost_by({{"c", "a"}, {"a", "c"}, {"b", "c"}}) == "c");
  CHECK(lost_by({{"b", "a"}, {"c", "a"}, {"a", "c"}}) == "a");
  // Of one pair the later site goes, whoever speaks first, and who does not know counts for nobody.
  CHECK(lost_by({{"b", "a"}, {"a", "b"}}) == "b");
  CHECK(lost_by({{"c", ""}, {"a", "b"}, {"b", "a"}}) == "b");
  CHECK(lost_by({{"b", "a"}}) == "a");
  // The host's loss costs most.
  CHECK(lost_by({{"b", "a"}, {"a", "b"}}, "b") == "a");
  CHECK(lost_by({{"b", "a"}, {"a", "b"}}, "a") == "b");
  CHECK(lost_by({{"b", "a"}, {"c", "a"}, {"a", "c"}}, "a") == "a");
  CHECK(lost_by({{"a", "c"}, {"b", "c"}, {"c", "b"}}, "c") == "c");
  // Without a name it is the one that cannot go on.
  CHECK(lost_by({{"b", ""}}) == "b");
}

TEST_CASE("two members that lose only each other cost the others no more than a silent site") {
  Table table({.config = run_of(kAll), .sites = kAll, .min_sites = 2, .host = "a"},
              {.lost_after_seconds = 45});
  table.join();
  const double start_seconds = table.now_seconds;
  int64_t generation = 1;
  while (table.roster.state().run->progress.members == kAll) {
    for (const auto& site : kAll) table.receive(site, arrival(1, "aa", generation));
    table.pass(10, kAll);  // until the attempt fails
    table.receive("b", SuspectMessage{generation, "c"});
    table.receive("c", SuspectMessage{generation, "b"});
    table.pass(2, kAll);
    CHECK(table.roster.state().run->progress.generation == ++generation);
  }
  CHECK(table.now_seconds - start_seconds <= 45);
  CHECK(generation > 3);
  CHECK(view_of(table, "a").sites == Names{"a", "b"});
  // It comes back, at first before the line does. Each try stops the others, and so each pause is
  // longer than the one before.
  double pause_seconds = 15;
  for (const auto* process : {"c2", "c3", "c4"}) {
    table.pass(pause_seconds - 1, {"a", "b"});
    CHECK_THAT(only<WaitingMessage>(table.receive(process, registration("c"))).missing.at(0),
               Catch::Contains("site c did not reach a member"));
    table.pass(1, {"a", "b"});
    const auto welcome = table.receive(process, registration("c"));
    CHECK(std::get<Welcome>(welcome.back().message).is_newcomer);
    table.receive(process, arrival(1, "aa", generation));
    ++generation;
    CHECK(table.roster.state().run->progress.members == kAll);
    table.receive(process, LeaveMessage{Outcome::kPeerLost, "no link to b"});
    CHECK(table.roster.state().run->progress.generation == ++generation);
    pause_seconds *= 2;
  }
  // A run that pauses has nothing to lose by a try.
  table.receive("b", LeaveMessage{Outcome::kInterrupted, ""});
  CHECK(std::get<Welcome>(table.receive("c5", registration("c")).back().message).is_newcomer);
}

TEST_CASE("a link that carries nothing counts as broken when both of its ends are heard") {
  Table table(kAll, 1, 1, {.lost_after_seconds = 45});
  table.join();
  for (const auto& site : kAll) table.receive(site, arrival(1));
  const auto report = [&] { CHECK(table.receive("b", SuspectMessage{1, "c", true}).empty()); };
  const auto pass = [&](int seconds, const Names& living) {
    std::vector<Outgoing> told;
    for (int i = 0; i < seconds && told.empty(); ++i) {
      report();
      told = table.pass(1, living);
    }
    return told;
  };
  SECTION("for some seconds") {
    CHECK(pass(5, kAll).empty());
    const auto told = pass(1, kAll);
    CHECK(receivers<ViewMessage>(told) == kAll);
    CHECK(std::get<ViewMessage>(told.front().message).reason ==
          "a connection of site b to site c broke");
    // Of an older generation.
    CHECK(only<ViewMessage>(table.receive("b", SuspectMessage{1, "c", true})).generation == 2);
  }
  SECTION("and not while the line of one of them is down") {
    CHECK(pass(30, {"a", "b"}).empty());
    CHECK(pass(4, kAll).empty());
    SECTION("it carries something again") {
      CHECK(table.pass(60, kAll).empty());
    }
    SECTION("it does not") {
      CHECK(receivers<ViewMessage>(pass(3, kAll)) == kAll);
    }
  }
  SECTION("and not after a commit") {
    CHECK(pass(5, kAll).empty());
    for (const auto& site : kAll) table.receive(site, ballot(1));
    for (const auto& site : kAll) table.receive(site, arrival(2));
    CHECK(table.pass(60, kAll).empty());
  }
}

TEST_CASE("a site that leaves early leaves the others a generation of their own") {
  auto table = in_round_3();
  const auto told = table.receive("c", LeaveMessage{Outcome::kInterrupted, "a stop"});
  CHECK(receivers<GoodbyeMessage>(told) == Names{"c"});
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  // What it still sends is a stranger's.
  only<UnknownSiteMessage>(table.receive("c", arrival(3)));
}

TEST_CASE("a site that was done early is missed by the next arrival, which begins a generation") {
  Table table({"a", "b", "c"}, 1, 1);
  table.join();
  table.run_round(1);
  CHECK(receivers<ViewMessage>(table.receive("c", LeaveMessage{Outcome::kDone, ""})).empty());
  CHECK(receivers<ViewMessage>(table.receive("a", arrival(2))) == Names{"a", "b"});
  CHECK(receivers<Go>(table.receive("a", arrival(2, "aa", 2))).empty());
  CHECK(receivers<Go>(table.receive("b", arrival(2, "aa", 2))) == Names{"a", "b"});
}

TEST_CASE("two sites lost at once leave in one generation") {
  auto table = in_round_3();
  const auto told = table.pass(10, {"a"});
  CHECK(receivers<ViewMessage>(told) == Names{"a"});
  const auto view = view_of(table, "a");
  CHECK(view.generation == 2);
  CHECK(view.sites == Names{"a"});
}

TEST_CASE("the round's summary is of the sites that are left") {
  auto table = in_round_3();
  table.pass(10, {"a", "b"});
  for (const auto* site : {"a", "b"}) {
    table.receive(site, MetricsMessage{3, 2.5, 1000, 9, 1});
  }
  CHECK_THAT(table.roster.round_summary(), Catch::Contains("round 3: training loss 2.5"));
}

TEST_CASE("when half of the sites or more are away, it is said whose work is not counted") {
  Table table({"a", "b", "c", "d"}, 1, 1);
  table.join();
  table.pass(10, {"a", "b", "c"});
  CHECK_THAT(table.roster.newest_change(), !Catch::Contains("not counted"));
  table.pass(10, {"a", "b"});
  CHECK_THAT(table.roster.newest_change(),
             Catch::Contains("half of the sites or fewer: the work of c, d is not counted until"));
  table.pass(10, {"a"});
  CHECK_THAT(table.roster.newest_change(),
             Catch::Contains("one site alone: the work of b, c, d is not counted until"));
}
