// How a run begins whose sites have states of it, or of which some are away.
#include <algorithm>
#include <iterator>

#include "tests/wan/roster/table.h"

namespace farstep::wan {
namespace {

using Catch::Contains;

RegisterMessage resuming(const std::string& site, std::vector<OfferedState> states) {
  auto message = registration(site);
  message.resume = Resume::kAlways;
  message.states = std::move(states);
  return message;
}

// After so many rounds of these members.
OfferedState after(int64_t rounds, Names members) {
  return {.syncs = rounds, .theta_hash = "aa", .round = rounds, .members = std::move(members)};
}

Table waiting_table(std::optional<int64_t> min_sites) {
  return Table(kAll, 1, min_sites,
               {.join_seconds = 100, .lost_after_seconds = 5, .pause_seconds = 60});
}

// Sites register every second until `seconds` have passed or the run begins.
std::vector<Outgoing> wait(Table& table, double seconds,
                           const std::vector<RegisterMessage>& sites) {
  for (const double end_seconds = table.now_seconds + seconds; table.now_seconds < end_seconds;) {
    table.now_seconds += 1;
    std::vector<Outgoing> messages;
    for (const auto& site : sites) {
      std::ranges::move(table.receive(site.site, site), std::back_inserter(messages));
    }
    std::ranges::move(table.roster.tick(table.now_seconds), std::back_inserter(messages));
    if (table.roster.has_begun()) return messages;
  }
  return {};
}

}  // namespace

TEST_CASE("sites resume from the state that most have, and the others are newcomers") {
  Table table(kAll, 1, 2);
  table.receive("a", resuming("a", {after(5, kAll), after(4, kAll)}));
  table.receive("b", resuming("b", {after(5, kAll), after(4, kAll)}));
  const auto messages = table.receive("c", resuming("c", {after(4, kAll)}));
  REQUIRE(receivers<Welcome>(messages) == kAll);
  for (const auto& [site, message] : messages) {
    const auto& welcome = std::get<Welcome>(message);
    CHECK(welcome.start_syncs == 5);
    CHECK(welcome.is_newcomer == (site == "c"));
    CHECK(welcome.sites == (site == "c" ? kAll : Names{"a", "b"}));
    CHECK(welcome.first_sites.size() == 2);
  }
  // It gets the state of the start, and so takes part in the first sync.
  const auto asked = table.receive("c", FetchMessage{"10.0.0.3", 4000, "token"});
  CHECK(only<DonateMessage>(asked).round == 5);
  const auto offered = table.receive(asked[0].connection, OfferMessage{"token", 5});
  REQUIRE(receivers<HandoverMessage>(offered) == Names{"c"});
  CHECK(std::get<HandoverMessage>(offered.back().message).theta_hash == "aa");
  CHECK(receivers<ViewMessage>(table.receive("c", arrival(6))) == kAll);
  for (const auto& site : kAll) table.receive(site, arrival(6, "aa", 2));
  table.receive("a", ballot(6, "bb", 2));
  table.receive("b", ballot(6, "bb", 2));
  CHECK(receivers<CommittedMessage>(table.receive("c", ballot(6, "bb", 2))) == kAll);
}

TEST_CASE("without any checkpoint to resume from all are refused and may try again") {
  Table table({"a", "b"});
  table.receive("a", resuming("a", {}));
  const auto messages = table.receive("b", resuming("b", {}));
  CHECK(receivers<RefusedMessage>(messages) == Names{"a", "b"});
  CHECK_THAT(std::get<RefusedMessage>(messages[0].message).message,
             Contains("no site has a checkpoint") && Contains("without --resume"));
  CHECK_FALSE(table.roster.has_begun());
  table.join();
}

TEST_CASE("sites whose state is the newest of all begin at once without one that left before") {
  auto table = waiting_table(1);
  const Names two = {"a", "b"};
  CHECK(only<WaitingMessage>(table.receive("b", resuming("b", {after(6, two)}))).missing ==
        Names{"a", "c"});
  const auto messages = table.receive("a", resuming("a", {after(6, two), after(5, two)}));
  CHECK(receivers<Welcome>(messages) == two);
  CHECK(table.roster.members() == two);
  const auto late = only<Welcome>(table.receive("c", resuming("c", {after(2, kAll)})));
  CHECK(late.is_newcomer);
}

TEST_CASE("sites begin without one that may have a newer state only after a long wait") {
  auto table = waiting_table(2);
  const std::vector<RegisterMessage> sites = {resuming("a", {after(6, kAll)}),
                                              resuming("b", {after(6, kAll)})};
  CHECK(wait(table, 89, sites).empty());
  CHECK(receivers<Welcome>(wait(table, 3, sites)) == Names{"a", "b"});
  CHECK(only<Welcome>(table.receive("c", resuming("c", {after(7, {"c"})}))).is_newcomer);
}

TEST_CASE("a fresh run begins with min_sites when the others do not come") {
  auto table = waiting_table(2);
  std::vector<RegisterMessage> sites = {registration("c")};
  CHECK(wait(table, 200, sites).empty());  // too few
  sites.push_back(registration("a"));
  CHECK(receivers<Welcome>(wait(table, 2, sites)) == Names{"a", "c"});
  CHECK(table.roster.members() == Names{"a", "c"});

  // One of three could begin another run than the other two.
  auto alone = waiting_table(1);
  CHECK(wait(alone, 200, {registration("c")}).empty());
  auto old = waiting_table(1);
  CHECK(wait(old, 200, {resuming("a", {after(6, kAll)})}).empty());

  // By default every site is needed.
  auto strict = waiting_table({});
  CHECK(wait(strict, 200, sites).empty());
  CHECK(only<WaitingMessage>(strict.receive("a", registration("a"))).missing == Names{"b"});
}

}  // namespace farstep::wan
