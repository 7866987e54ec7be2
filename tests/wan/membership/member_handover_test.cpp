// A member that is asked for the run's state.
#include <future>

#include "tests/support/catch.h"
#include "tests/wan/membership/puppet.h"

namespace farstep::wan {
namespace {

DonateMessage request_of(const std::string& site, int64_t round) {
  return {round, {site, {"10.0.0.1", 4000, fmt::format("{:032x}", round)}, "s0"}, 0};
}

// Returns when the member has taken all that was sent to it before.
void wait_for_messages(Puppet& puppet) {
  auto put = std::async(std::launch::async, [&] { puppet.member.put("key", ""); });
  puppet.next<PutMessage>();
  puppet.send(StoredMessage{"key"});
  put.get();
}

TEST_CASE("a member keeps requests for a state until it has that state") {
  Puppet puppet(0);
  puppet.send(request_of("c", 2));
  puppet.send(request_of("c", 3));  // its newest
  puppet.send(request_of("d", 4));
  wait_for_messages(puppet);
  CHECK(puppet.member.take_state_requests(2).empty());
  const auto taken = puppet.member.take_state_requests(3);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].newcomer == request_of("c", 3).newcomer);
  CHECK(puppet.member.take_state_requests(3).empty());
  // It is too late for the state after round 4 then.
  CHECK(puppet.member.take_state_requests(5).empty());
  CHECK(puppet.member.take_state_requests(4).empty());
}

const std::string kSomeToken = "0123456789abcdef0123456789abcdef";

TEST_CASE("a donor sends a state only to a newcomer that still wants it") {
  struct Row {
    std::vector<CoordinatorMessage> answers;
    bool is_wanted;
  };
  const std::vector<Row> table = {
      {{StoredMessage{kSomeToken}}, true},
      {{UnwantedMessage{kSomeToken, 3}}, false},
      {{UnwantedMessage{kSomeToken, 2}, StoredMessage{kSomeToken}},
       true},  // the first is of an older one
  };
  for (const auto& row : table) {
    Puppet puppet(0);
    auto offered = std::async(std::launch::async, [&] {
      return puppet.member.offer_state({.token = kSomeToken, .round = 3}, {});
    });
    CHECK(puppet.next<OfferMessage>().round == 3);
    for (const auto& answer : row.answers) puppet.send(answer);
    CHECK(offered.get() == row.is_wanted);
  }
}

}  // namespace
}  // namespace farstep::wan
