// Newcomers that ask for the state in the middle of a round.
#include "tests/wan/roster/newcomers.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

// Sites a and b in round 2 of generation 2, without c. The uplink of b is faster.
Table in_round_2(int64_t fragments = 1) {
  auto table = without_c(fragments);
  for (int64_t fragment = 0; fragment < fragments; ++fragment) {
    table.receive("a", arrival_with(1e6, 1, fragment, fragments));
    table.receive("b", arrival_with(9e6, 1, fragment, fragments));
    for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1, fragment));
  }
  return table;
}

// The same, and c's new process has asked for the state.
Table asked(int64_t fragments = 1) {
  auto table = in_round_2(fragments);
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  return table;
}

}  // namespace

TEST_CASE("a newcomer gets the state of the round's start at once, and attends this round") {
  auto table = in_round_2();
  table.receive("c2", registration("c"));
  const auto told = table.receive("c2", kFetch);
  CHECK(receivers<DonateMessage>(told) == Names{"b"});
  const auto request = only<DonateMessage>(told);
  CHECK(request.round == 1);
  CHECK(request.newcomer == Newcomer{"c", kFetch, "b"});
  CHECK(request.seconds == 0);
  // The first request may be lost.
  CHECK(only<DonateMessage>(table.receive("c2", kFetch)).newcomer == request.newcomer);
  only<UnwantedMessage>(table.receive("a", kOffer));
  const auto offered = table.receive("b", kOffer);
  CHECK(receivers<StoredMessage>(offered) == Names{"b"});
  CHECK(receivers<HandoverMessage>(offered) == Names{"c2"});
  const auto handover = only<HandoverMessage>(table.receive("c2", kFetch));
  CHECK(handover.round == 1);
  CHECK(handover.theta_hash == "bb");
  CHECK(handover.donor == "b");
  CHECK(handover.endpoint == kOffer.endpoint);

  const auto joined = table.receive("c2", arrival_with(0, 2));
  CHECK(receivers<ViewMessage>(joined) == Names{"a", "b", "c2"});
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(2, "bb", 3));
  CHECK(receivers<Go>(table.receive("c2", arrival(2, "bb", 3))) == Names{"a", "b", "c2"});
}

TEST_CASE("a donor that keeps silent costs nobody time, and the state after the round follows") {
  auto table = asked();
  table.receive("a", arrival_with(1e6, 2));
  const auto started = table.receive("b", arrival_with(9e6, 2));
  CHECK(receivers<Go>(started) == Names{"a", "b"});
  CHECK(std::get<Go>(started.front().message).newcomers ==
        std::vector<Newcomer>{{"c", kFetch, "b"}});
  // Its offer comes too late: the sync changes the state.
  CHECK(only<UnwantedMessage>(table.receive("b", kOffer)).token == kSomeToken);
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(2));
  CHECK(only<UnwantedMessage>(table.receive("b", kOffer)).token == kSomeToken);
  const auto offered = table.receive("b", OfferMessage{kSomeToken, 2});
  CHECK(std::get<HandoverMessage>(offered.back().message).round == 2);
}

TEST_CASE("all wait for a state that is on its way in mid-round as long as its donor expects") {
  for (const double seconds : {0.0, 4.0}) {
    auto table = asked();
    table.receive("b", OfferMessage{kSomeToken, 1, seconds});
    table.receive("a", arrival_with(1e6, 2));
    const auto last = table.receive("b", arrival_with(9e6, 2));
    CHECK(receivers<Go>(last).size() == (seconds == 0 ? 2 : 0));
    if (seconds == 0) {
      CHECK(std::get<Go>(last.front().message).newcomers.empty());  // it has one on its way
      CHECK(only<LateMessage>(table.receive("c2", arrival_with(0, 2))).round == 2);
      continue;
    }
    CHECK(receivers<Go>(table.pass(5, {"a", "b", "c2"})).empty());
    CHECK(receivers<ViewMessage>(table.receive("c2", arrival_with(0, 2))).size() == 3);
  }
}

TEST_CASE("a newcomer that was late is asked for again, with the time that its transfer took") {
  auto table = asked();
  table.receive("b", kOffer);
  table.receive("a", arrival_with(1e6, 2));
  table.receive("b", arrival_with(9e6, 2));
  table.pass(4, {"a", "b", "c2"});
  only<LateMessage>(table.receive("c2", arrival_with(0, 2)));
  // In the exchange, so its request waits for the commit.
  const FetchMessage again{"10.0.0.3", 4000, "another"};
  CHECK(table.receive("c2", again).empty());
  table.receive("a", ballot_of(2));
  const auto committed = table.receive("b", ballot_of(2));
  CHECK(receivers<CommittedMessage>(committed) == Names{"a", "b"});
  CHECK(receivers<DonateMessage>(committed) == Names{"b"});
  const auto request = std::get<DonateMessage>(committed.back().message);
  CHECK(request.round == 2);
  CHECK(request.seconds == 4);
}

TEST_CASE("no member is asked that has arrived, nor any once a sync of the round has begun") {
  auto table = in_round_2();
  table.receive("c2", registration("c"));
  table.receive("b", arrival_with(9e6, 2));
  CHECK(receivers<DonateMessage>(table.receive("c2", kFetch)) == Names{"a"});
  auto late = in_round_2();
  late.receive("c2", registration("c"));
  late.receive("a", arrival_with(1e6, 2));
  late.receive("b", arrival_with(9e6, 2));
  CHECK(late.receive("c2", kFetch).empty());
  // With fragments the state is that of the round's start until the first sync begins.
  auto parts = in_round_2(2);
  parts.receive("a", arrival_with(1e6, 2, 0, 2));
  parts.receive("b", arrival_with(9e6, 2, 0, 2));
  for (const auto* site : {"a", "b"}) parts.receive(site, ballot_of(2, 0));
  parts.receive("c2", registration("c"));
  CHECK(parts.receive("c2", kFetch).empty());
  // Nobody has the hash of a state before the first round.
  auto first = without_c();
  first.receive("c2", registration("c"));
  CHECK(first.receive("c2", kFetch).empty());
}

TEST_CASE("a donor that is lost is replaced in mid-round, and several newcomers have several") {
  Table table({"a", "b", "c", "d", "e"}, 1, 1);
  table.join();
  table.run_round(1);
  table.pass(10, {"a", "b", "c"});
  for (const auto* site : {"d", "e"}) table.receive(std::string(site) + "2", registration(site));
  CHECK(receivers<DonateMessage>(table.receive("d2", FetchMessage{"10.0.0.3", 4000, "d"})) ==
        Names{"a"});
  CHECK(receivers<DonateMessage>(table.receive("e2", FetchMessage{"10.0.0.4", 4000, "e"})) ==
        Names{"b"});
  table.receive("b", OfferMessage{"e", 1});
  const auto told = table.pass(10, {"b", "c", "d2", "e2"});  // a is lost
  CHECK(receivers<ViewMessage>(told) == Names{"b", "c", "d2", "e2"});
  // That of e has offered, and sends.
  CHECK(receivers<DonateMessage>(told) == Names{"c"});
  CHECK(std::get<DonateMessage>(told.back().message).newcomer.site == "d");
}

TEST_CASE("a site that takes the state again is not asked for with its old request") {
  auto table = asked();
  table.receive("b", kOffer);
  table.receive("c2", arrival_with(0, 2));  // a member, in generation 3
  const auto told = table.receive("c2", FetchMessage{"10.0.0.3", 4000, "another"});
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b", "c2"});
  CHECK(receivers<DonateMessage>(told) == Names{"b"});
  CHECK(std::get<DonateMessage>(told.back().message).newcomer.request.token == "another");
}

TEST_CASE(
    "a restarted coordinator knows the state of the round's start, and who was asked for it") {
  auto table = in_round_2();
  Table next(table, table.roster.state());
  next.receive("a", HeartbeatMessage{});
  next.pass(10, {"a", "b"});
  next.receive("c2", registration("c"));
  CHECK(receivers<DonateMessage>(next.receive("c2", kFetch)) == Names{"b"});
  const auto journal = read_json<RosterState>(to_json(next.roster.state()), "the journal");
  Table third(next, journal);
  CHECK(only<DonateMessage>(third.receive("c2", kFetch)).newcomer == Newcomer{"c", kFetch, "b"});
  const auto offered = third.receive("b", kOffer);
  CHECK(receivers<HandoverMessage>(offered) == Names{"c2"});
  CHECK(std::get<HandoverMessage>(offered.back().message).theta_hash == "bb");
}
