// Sites that come back into a run that goes on.
#include "tests/wan/roster/newcomers.h"

using namespace farstep;
using namespace farstep::wan;

TEST_CASE("a newcomer gets the state after a round, and is a member from the next sync") {
  auto table = without_c();
  const auto welcome = only<Welcome>(table.receive("c2", registration("c")));
  CHECK(welcome.is_newcomer);
  CHECK(welcome.sites == Names{"a", "b", "c"});
  CHECK(welcome.site_id == 2);
  CHECK(welcome.generation == 2);
  CHECK(welcome.first_sites.size() == 3);

  // In the middle of the sync: it gets the state that follows.
  CHECK(table.receive("c2", kFetch).empty());
  table.receive("a", arrival_with(1e6, 1));
  const auto started = table.receive("b", arrival_with(9e6, 1));
  const auto go = std::get<Go>(started.front().message);
  CHECK(go.sites == Names{"a", "b"});
  CHECK(go.newcomers == std::vector<Newcomer>{{"c", kFetch, "b"}});
  // The same to a member whose answer was lost.
  CHECK(only<Go>(table.receive("a", arrival_with(1e6, 1))).newcomers == go.newcomers);
  table.receive("a", ballot_of(1));
  table.receive("b", ballot_of(1));
  // The donor may apply the sync later. Nobody else can offer the state, nor another one.
  CHECK(table.receive("c2", kFetch).empty());
  CHECK(only<UnwantedMessage>(table.receive("a", kOffer)).token == kSomeToken);
  CHECK(only<UnwantedMessage>(table.receive("b", OfferMessage{"another", 1})).round == 1);
  CHECK(only<UnwantedMessage>(table.receive("b", OfferMessage{kSomeToken, 2})).round == 2);
  const auto offered = table.receive("b", kOffer);
  CHECK(receivers<StoredMessage>(offered) == Names{"b"});
  CHECK(receivers<HandoverMessage>(offered) == Names{"c2"});
  only<StoredMessage>(table.receive("b", kOffer));
  const auto handover = only<HandoverMessage>(table.receive("c2", kFetch));
  CHECK(handover.donor == "b");
  CHECK(handover.round == 1);
  CHECK(handover.theta_hash == "bb");
  CHECK(handover.endpoint == "tcp://10.0.0.2:4000");

  // One member waits at the next sync already.
  table.receive("a", arrival_with(1e6, 2));
  const auto told = table.receive("c2", arrival_with(0, 2));
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b", "c2"});
  const auto view = std::get<ViewMessage>(told.front().message);
  CHECK(view.generation == 3);
  CHECK(view.sites == Names{"a", "b", "c"});
  CHECK(view.joined == "c");
  CHECK(view.lost_generation == 2);
  // Who has not heard of it yet hears it at its arrival.
  CHECK(only<ViewMessage>(table.receive("b", arrival_with(9e6, 2))).generation == 3);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(2, "aa", 3));
  const auto together = table.receive("c2", arrival(2, "aa", 3));
  CHECK(receivers<Go>(together) == Names{"a", "b", "c2"});
  CHECK(std::get<Go>(together.front().message).newcomers.empty());
  for (const auto* site : {"a", "b"}) table.receive(site, ballot(2, "bb", 3));
  CHECK(receivers<CommittedMessage>(table.receive("c2", ballot(2, "bb", 3))) ==
        Names{"a", "b", "c2"});
  // From here on its loss is that of a member.
  CHECK(receivers<ViewMessage>(table.pass(10, {"a", "b"})) == Names{"a", "b"});
}

TEST_CASE("a newcomer whose sync has begun without it fetches the next state") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  table.receive("a", kOffer);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 2));
  CHECK(only<LateMessage>(table.receive("c2", arrival_with(0, 2))).round == 2);
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(2));
  CHECK(only<LateMessage>(table.receive("c2", arrival_with(0, 2))).round == 2);
  // It does not get the old state once more.
  const FetchMessage again{"10.0.0.3", 4000, "another"};
  CHECK(only<DonateMessage>(table.receive("c2", again)).round == 2);
  table.receive("a", arrival_with(0, 3));
  CHECK(std::get<Go>(table.receive("b", arrival_with(0, 3)).front().message).newcomers ==
        std::vector<Newcomer>{{"c", again, "a"}});
}

TEST_CASE("all wait for a newcomer that was late, once and not for ever") {
  struct Way {
    bool is_offered, comes;
  };
  for (const auto& [is_offered, comes] : {Way{true, true}, {true, false}, {false, false}}) {
    auto table = without_c();
    table.receive("c2", registration("c"));
    table.receive("c2", kFetch);
    const auto run = [&](int64_t round) {
      for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, round));
      for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(round));
    };
    run(1);
    table.receive("a", kOffer);
    table.pass(4, {"a", "b", "c2"});  // the state is on its way for 4 s
    for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 2));
    only<LateMessage>(table.receive("c2", arrival_with(0, 2)));
    table.receive("c2", FetchMessage{"10.0.0.3", 4000, "another"});
    for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(2));
    run(3);
    for (const auto* site : {"a", "b"}) {
      CHECK(receivers<Go>(table.receive(site, arrival_with(0, 4))).empty());
    }
    if (is_offered) {
      table.receive("a", OfferMessage{"another", 3});  // a little after the donor's arrival
      CHECK(receivers<Go>(table.pass(5, {"a", "b", "c2"})).empty());
    }
    if (comes) {
      CHECK(receivers<ViewMessage>(table.receive("c2", arrival_with(0, 4))).size() == 3);
    } else {
      CHECK(receivers<Go>(table.pass(2, {"a", "b", "c2"})) == Names{"a", "b"});
    }
  }
}

TEST_CASE("all wait for a newcomer as long as its donor expects the transfer to take") {
  for (const bool comes : {true, false}) {
    auto table = without_c();
    table.receive("c2", registration("c"));
    table.receive("c2", kFetch);
    for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
    for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
    // A little after all have arrived, as with eager updates.
    for (const auto* site : {"a", "b"}) {
      CHECK(receivers<Go>(table.receive(site, arrival_with(0, 2))).empty());
    }
    table.receive("a", OfferMessage{kSomeToken, 1, 4});
    CHECK(receivers<Go>(table.pass(5, {"a", "b", "c2"})).empty());
    if (comes) {
      CHECK(receivers<ViewMessage>(table.receive("c2", arrival_with(0, 2))).size() == 3);
    } else {
      CHECK(receivers<Go>(table.pass(1, {"a", "b", "c2"})) == Names{"a", "b"});
    }
  }
}

TEST_CASE(
    "an offer that comes when the next sync has begun is refused, and the newcomer gets the "
    "state after it") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 2));
  const auto started = table.pass(1, {"a", "b", "c2"});
  CHECK(receivers<Go>(started) == Names{"a", "b"});
  CHECK(std::get<Go>(started.front().message).newcomers ==
        std::vector<Newcomer>{{"c", kFetch, "a"}});
  CHECK(only<UnwantedMessage>(table.receive("a", kOffer)).round == 1);
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(2));
  CHECK(only<UnwantedMessage>(table.receive("a", kOffer)).round == 1);
  CHECK(receivers<HandoverMessage>(table.receive("a", OfferMessage{kSomeToken, 2})) == Names{"c2"});
}

TEST_CASE("only the last fragment of a round hands the state over") {
  auto table = without_c(2);
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const int64_t fragment : {0, 1}) {
    table.receive("a", arrival_with(0, 1, fragment, 2));
    const auto go =
        std::get<Go>(table.receive("b", arrival_with(0, 1, fragment, 2)).front().message);
    CHECK(go.newcomers.size() == static_cast<std::size_t>(fragment));
    table.receive("a", ballot_of(1, fragment));
    table.receive("b", ballot_of(1, fragment));
    CHECK(receivers<HandoverMessage>(table.receive("a", kOffer)).size() ==
          static_cast<std::size_t>(fragment));
  }
}

TEST_CASE("the loss of a newcomer changes nothing, and a restarted process takes its place") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  // A second process: it waits until the first is silent for 2.5 heartbeats.
  CHECK(only<WaitingMessage>(table.receive("c3", registration("c"))).missing.size() == 1);
  CHECK(receivers<ViewMessage>(table.pass(4, {"a", "b"})).empty());
  CHECK(only<Welcome>(table.receive("c3", registration("c"))).is_newcomer);
  CHECK(only<UnknownSiteMessage>(table.receive("c2", kFetch)).message.find("knows no such") !=
        std::string::npos);
  CHECK(table.roster.failure().empty());
}

TEST_CASE("when all members have left a newcomer hears that the run is over") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  CHECK(receivers<PeerLostMessage>(table.receive("a", LeaveMessage{})).empty());
  CHECK(receivers<PeerLostMessage>(table.receive("b", LeaveMessage{})) == Names{"c2"});
  CHECK(table.roster.is_over());
  CHECK(table.roster.failure().empty());
  const auto late = only<RefusedMessage>(table.receive("c3", registration("c")));
  CHECK_THAT(late.message, Catch::Contains("the run is over: its sites have done all rounds"));
  CHECK(late.is_temporary);  // more rounds may follow
}

TEST_CASE("a member is lost while a newcomer's state is on its way") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  const auto told = table.pass(10, {"b", "c2"});
  CHECK(receivers<ViewMessage>(told) == Names{"b", "c2"});
  // It arrives in the generation in which it fetched.
  CHECK(only<ViewMessage>(table.receive("c2", arrival(2, "aa", 2))).generation == 3);
  CHECK(receivers<ViewMessage>(table.receive("c2", arrival(2, "aa", 3))) == Names{"b", "c2"});
  table.receive("b", arrival(2, "aa", 4));
  CHECK(receivers<Go>(table.receive("c2", arrival(2, "aa", 4))) == Names{"b", "c2"});
}

TEST_CASE("a donor that is lost before its offer is replaced by another one") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  table.pass(10, {"b", "c2"});
  const auto go = std::get<Go>(table.receive("b", arrival(2, "aa", 3)).front().message);
  CHECK(go.newcomers == std::vector<Newcomer>{{"c", kFetch, "b"}});
  table.receive("b", ballot(2, "bb", 3));
  CHECK(receivers<HandoverMessage>(table.receive("b", OfferMessage{kSomeToken, 2})) == Names{"c2"});
}

TEST_CASE("a newcomer that holds another theta_global stops the run") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  table.receive("c2", arrival(2, "ff", 2));
  for (const auto* site : {"a", "b"}) table.receive(site, arrival(2, "aa", 3));
  const auto stopped = table.receive("c2", arrival(2, "ff", 3));
  CHECK(receivers<StopMessage>(stopped) == Names{"a", "b", "c2"});
}

TEST_CASE("a go and a commit reach members alone, and only their votes count") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("a", arrival_with(0, 1));
  // The arrival of c may be on its way, and the go would be its answer.
  CHECK(receivers<Go>(table.receive("b", arrival_with(0, 1))) == Names{"a", "b"});
  table.receive("a", ballot_of(1));
  CHECK(only<ErrorMessage>(table.receive("c2", ballot_of(1))).message.find("without it") !=
        std::string::npos);
  CHECK(receivers<CommittedMessage>(table.receive("b", ballot_of(1))) == Names{"a", "b"});
}

namespace {

// Site c has become a member in generation 3, and attends round 2.
Table with_c_in_round_2() {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  for (const auto* site : {"a", "b"}) table.receive(site, ballot_of(1));
  table.receive("c2", arrival_with(0, 2));
  return table;
}

}  // namespace

TEST_CASE("a restarted coordinator keeps the handover that its donor keeps to, and the request") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  for (const auto* site : {"a", "b"}) table.receive(site, arrival_with(0, 1));
  table.receive("a", ballot_of(1));
  table.receive("b", ballot_of(1));  // the answers are lost with the coordinator
  Table next(table, table.roster.state());
  next.receive("a", ballot_of(1));
  CHECK(next.receive("c2", kFetch).empty());
  next.receive("a", kOffer);
  Table third(next, next.roster.state());
  const auto handover = only<HandoverMessage>(third.receive("c2", kFetch));
  CHECK(handover.round == 1);
  CHECK(handover.donor == "a");

  auto attending = with_c_in_round_2();
  Table later(attending, attending.roster.state());
  later.receive("a", arrival(2, "aa", 3));
  CHECK(later.receive("c2", kFetch).empty());  // a late repetition
}

TEST_CASE("nobody waits for a newcomer that gives up the round it attends") {
  auto table = with_c_in_round_2();
  CHECK(table.receive("c2", kFetch).empty());  // a late repetition
  const FetchMessage again{"10.0.0.3", 4000, "another"};
  const auto told = table.receive("c2", again);
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b", "c2"});
  CHECK(std::get<ViewMessage>(told.front().message).sites == Names{"a", "b"});
  table.receive("a", arrival(2, "aa", 4));
  const auto go = std::get<Go>(table.receive("b", arrival(2, "aa", 4)).front().message);
  CHECK(go.newcomers == std::vector<Newcomer>{{"c", again, "a"}});
}

TEST_CASE("a site that leaves after the round is no donor") {
  auto table = without_c();
  table.receive("c2", registration("c"));
  table.receive("c2", kFetch);
  auto leaving = arrival_with(9e6, 1);
  leaving.contribution.timing.is_leaving = true;
  table.receive("b", leaving);
  const auto go = std::get<Go>(table.receive("a", arrival_with(1e6, 1)).front().message);
  CHECK(go.newcomers == std::vector<Newcomer>{{"c", kFetch, "a"}});
}

TEST_CASE("a site that only attends a round is no donor") {
  for (const bool others_work : {true, false}) {
    auto table = with_c_in_round_2();
    table.pass(10, {"a", "c2"});  // b is lost and comes back
    table.receive("b2", registration("b"));
    table.receive("b2", kFetch);
    auto attending = arrival(2, "aa", 4);
    attending.contribution.work = {};
    auto working = others_work ? arrival(2, "aa", 4) : attending;
    table.receive("c2", attending);
    const auto go = std::get<Go>(table.receive("a", working).front().message);
    CHECK(go.sites == Names{"a", "c"});
    CHECK(go.newcomers ==
          (others_work ? std::vector<Newcomer>{{"b", kFetch, "a"}} : std::vector<Newcomer>{}));
  }
}

TEST_CASE("a site that has left and is started again is a newcomer") {
  Table table({"a", "b", "c"}, 1, 1);
  table.join();
  table.run_round(1);
  table.receive("c", LeaveMessage{});
  const auto told = table.receive("c2", registration("c"));
  CHECK(receivers<ViewMessage>(told) == Names{"a", "b"});
  CHECK(receivers<Welcome>(told) == Names{"c2"});
  CHECK(std::get<Welcome>(told.back().message).is_newcomer);
}

TEST_CASE("values and waiting requests end with their generation, but for those of the start") {
  Table table({"a", "b", "c"}, 1, 1);
  table.join();
  table.receive("a", PutMessage{"compute/a", "00"});
  table.run_round(1);
  table.receive("a", PutMessage{"network/1/a", "01"});
  table.receive("a", GetMessage{"network/1/c"});
  CHECK(table.roster.num_kept() == 3);
  table.pass(10, {"a", "b"});
  CHECK(table.roster.num_kept() == 1);
  CHECK(only<ValueMessage>(table.receive("b", GetMessage{"compute/a"})).value == "00");
}
