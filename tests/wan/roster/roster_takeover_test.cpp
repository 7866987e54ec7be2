// A coordinator without a state, to which the members of a run come.
#include "tests/support/catch.h"
#include "tests/wan/roster/table.h"

using namespace farstep;
using Catch::Matchers::Contains;

namespace {

const Names kAll = {"a", "b", "c"};

// The registration of a member of generation 3 of the sites a, b and c.
RegisterMessage returning(const std::string& site, int64_t committed_round,
                          int64_t generation = 3) {
  auto message = registration(site);
  message.generation = generation;
  message.term = 7;
  message.committed_round = committed_round;
  message.memory = RunMemory{kAll, {Json{{"of", "a"}}, nullptr, nullptr}, {{"compute/a", "62"}}};
  return message;
}

Table blank(std::optional<int64_t> min_sites = {}) {
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
Table stand_by(int64_t place, int64_t min_sites) {
  return Table(kAll, 1, min_sites, {.lost_after_seconds = 20, .pause_seconds = 60}, place);
}

}  // namespace

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
  CHECK(welcome.profiles.at(0) == Json{{"of", "a"}});
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
  auto few = returning("a", 4);
  few.memory->profiles.clear();
  only<RefusedMessage>(table.receive("a", few));
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
  crowd.pass(1, {"a", "b"});
  // Two of three, after lost_after_seconds.
  CHECK(crowd.welcomed() == Names{"a", "b"});
  // With all there, it is its turn after 6 heartbeats.
  auto next = stand_by(2, 2);
  Crowd all(next);
  for (const auto& site : kAll) all.send(site, returning(site, 4));
  all.pass(5, kAll);
  CHECK(receivers<ClaimMessage>(all.seen).empty());
  all.pass(1, kAll);
  CHECK(all.welcomed() == kAll);
  CHECK(next.roster.term() % kMostCoordinators == 2);
  CHECK(next.roster.term() > 7);
  // The generations of two that go on from the same one differ.
  CHECK(all.view().generation != crowd.view().generation - 2000);
  auto first = stand_by(0, 2);
  Crowd others(first);
  for (const auto& site : kAll) others.send(site, returning(site, 4));
  others.pass(1, kAll);
  CHECK(others.view().generation != all.view().generation);
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
