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

// Members register, and once more a second later, as what comes once may be old. Returns the
// answers to the repetitions.
std::vector<Outgoing> come(Table& table, const std::vector<RegisterMessage>& messages) {
  std::vector<Outgoing> seen;
  for (const bool is_repeated : {false, true}) {
    for (const auto& message : messages) {
      for (const auto& answer : table.receive(message.site, message)) {
        if (is_repeated) seen.push_back(answer);
      }
    }
    if (!is_repeated) table.now_seconds += 1;
  }
  return seen;
}

// Lets time pass in which these members repeat their registrations, until the run has begun.
std::vector<Outgoing> repeat(Table& table, double seconds, const Names& sites) {
  std::vector<Outgoing> seen;
  for (double passed = 0; passed < seconds; ++passed) {
    table.now_seconds += 1;
    for (const auto& site : sites) {
      if (table.roster.has_begun()) return seen;
      for (const auto& answer : table.receive(site, returning(site, 4))) seen.push_back(answer);
    }
    for (const auto& answer : table.roster.tick(table.now_seconds)) seen.push_back(answer);
  }
  return seen;
}

}  // namespace

TEST_CASE("when all members have come, a coordinator goes on with their run") {
  auto table = blank();
  CHECK(only<WaitingMessage>(table.receive("a", returning("a", 4))).missing == kAll);
  // The newest commit that a member knows counts.
  const auto told = come(table, {returning("a", 4), returning("b", 5), returning("c", 4)});
  CHECK(receivers<WaitingMessage>(told) == Names{"a", "b"});
  CHECK(receivers<Welcome>(told) == kAll);
  CHECK(receivers<ViewMessage>(told) == kAll);
  const auto view = std::get<ViewMessage>(told.back().message);
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
    const auto told = repeat(table, 10, {"a", "b"});
    if (min_sites == 3) {
      CHECK(receivers<Welcome>(told).empty());
      CHECK_FALSE(table.roster.has_begun());
      const auto all = come(table, {returning("a", 4), returning("b", 4), returning("c", 4)});
      CHECK(receivers<Welcome>(all) == kAll);
      continue;
    }
    CHECK(receivers<Welcome>(told) == Names{"a", "b"});
    CHECK(std::get<ViewMessage>(told.back().message).sites == Names{"a", "b"});
    // c comes too late, and joins as a newcomer.
    CHECK(only<RefusedMessage>(table.receive("c", returning("c", 4))).is_left_behind);
  }
}

TEST_CASE("a member whose place a new process has taken is not waited for") {
  auto table = blank();
  only<WaitingMessage>(table.receive("c2", registration("c")));
  const auto told = come(table, {returning("a", 4), returning("b", 4)});
  CHECK(receivers<Welcome>(told) == Names{"a", "b"});
  const auto newcomer = table.receive("c2", registration("c"));
  CHECK(receivers<Welcome>(newcomer) == Names{"c2"});
  CHECK(table.roster.pause_text().empty());
  // New processes alone do not begin another run beside members.
  auto other = blank();
  only<WaitingMessage>(come(other, {returning("b", 4)}));
  only<WaitingMessage>(other.receive("c2", registration("c")));
  const auto both = other.receive("a2", registration("a"));
  CHECK(receivers<Welcome>(both) == Names{"b"});
}

TEST_CASE("members that have gone again are not counted") {
  auto table = blank();
  come(table, {returning("a", 4)});
  CHECK(repeat(table, 4, {"b"}).size() == 4);
  CHECK(only<WaitingMessage>(come(table, {returning("c", 4)})).missing == Names{"a"});
}

TEST_CASE("the members of the newest generation go on") {
  auto table = blank(2);
  auto newest = returning("b", 5, 4);
  newest.memory->members = {"b", "c"};
  const auto told = come(table, {returning("a", 4), newest, returning("c", 4)});
  CHECK(receivers<Welcome>(told) == Names{"b", "c"});
  CHECK(only<RefusedMessage>(table.receive("a", returning("a", 4))).is_left_behind);
}

TEST_CASE("who was no member, or is one of another run, does not return") {
  auto table = blank();
  auto newcomer = returning("a", 4);
  newcomer.memory.reset();
  CHECK(only<RefusedMessage>(table.receive("a", newcomer)).is_left_behind);
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
  CHECK_FALSE(table.roster.has_begun());
}
