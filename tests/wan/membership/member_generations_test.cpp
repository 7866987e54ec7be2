// Members that go on over real sockets when one of them is lost.
#include <future>

#include "tests/support/catch.h"
#include "tests/wan/membership/parties.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

const SyncId kFirst{.round = 1};

std::future<std::optional<Go>> arrival_of(Member& member, const SyncId& sync) {
  return std::async(std::launch::async, [&member, sync] {
    return member.arrive(sync, {.work = {10, 1, 1}}, "aa", {});
  });
}

TEST_CASE("members that wait for a site go on without it when it vanishes") {
  Party party(3, quick_deadlines(), 2);
  auto first = arrival_of(*party.members[0], kFirst);
  auto second = arrival_of(*party.members[1], kFirst);
  party.members[2].reset();
  for (auto* arrival : {&first, &second}) {
    const auto go = arrival->get();
    REQUIRE(go);
    CHECK(go->generation == 2);
    CHECK(go->sites == std::vector<std::string>{"s0", "s1"});
    CHECK(go->contributions.size() == 2);
  }
  run_ranks(2, [&](int site) { party.members[site]->vote(kFirst, "bb", {}); });
  CHECK_FALSE(party.members[0]->has_failed());
}

TEST_CASE("a vote is void when a member is lost before its own, and the sync is begun again") {
  Party party(3, quick_deadlines(), 1);
  run_ranks(3, [&](int site) { party.members[site]->arrive(kFirst, {}, "aa", {}); });
  auto lost = std::async(std::launch::async, [&]() -> std::string {
    return error_of<PeerError>([&] { party.members[0]->vote(kFirst, "bb", {}); });
  });
  auto other = std::async(std::launch::async, [&]() -> std::string {
    return error_of<PeerError>([&] { party.members[1]->vote(kFirst, "bb", {}); });
  });
  party.members[2].reset();
  CHECK_THAT(lost.get(), Catch::StartsWith("site s2: silent"));
  CHECK_THAT(other.get(), Catch::StartsWith("site s2: silent"));
  const auto go = run_ranks(2, [&](int site) {
    if (!party.members[site]->is_renewed(1, "s2", {})) return int64_t{0};
    const auto generation = party.members[site]->arrive(kFirst, {}, "aa", {})->generation;
    party.members[site]->vote(kFirst, "bb", {});
    return generation;
  });
  CHECK(go == std::vector<int64_t>{2, 2});
}

TEST_CASE("nobody waits for a value of a site that is lost") {
  Party party(3, quick_deadlines(), 1);
  auto waiting = std::async(std::launch::async, [&] {
    return error_of<PeerError>([&] { party.members[0]->get("of the lost site"); });
  });
  party.members[2]->leave(Outcome::kFailed, "a full disk");
  CHECK_THAT(waiting.get(), Catch::Contains("a full disk"));
  // Nor if it is lost before.
  CHECK_THROWS_AS(party.members[0]->get("of the lost site"), PeerError);
  // Values of the next generation are waited for as ever.
  run_ranks(2, [&](int site) { party.members[site]->arrive(kFirst, {}, "aa", {}); });
  party.members[1]->put("of the next", "value");
  CHECK(party.members[0]->get("of the next") == "value");
}

TEST_CASE("an accused site that has died is given up sooner than a silent one") {
  auto deadlines = quick_deadlines();
  deadlines.lost_after_seconds = 3600;
  Party party(3, deadlines, 1);
  party.members[2].reset();
  // The test's own deadline is far below an hour.
  CHECK(party.members[0]->is_renewed(1, "s2", {}));
}

TEST_CASE("an accused site that lives stays, and the accuser hears of no generation") {
  auto deadlines = quick_deadlines();
  deadlines.lost_after_seconds = 0.5;
  Party party(3, deadlines, 1);
  CHECK_FALSE(party.members[0]->is_renewed(1, "s2", {}));
  CHECK_FALSE(party.members[2]->has_failed());
}

TEST_CASE("members whose connection broke do the sync anew, with sites to spare and without") {
  for (const std::optional<int64_t> min_sites : {std::optional<int64_t>(1), {}}) {
    Party party(2, quick_deadlines(), min_sites);
    run_ranks(2, [&](int site) { party.members[site]->arrive(kFirst, {}, "aa", {}); });
    CHECK(party.members[0]->is_renewed(1, "s1", {}));
    // The other one learns of it by its vote, or by the listener that ends its exchange.
    CHECK_THAT(error_of<PeerError>([&] { party.members[1]->vote(kFirst, "bb", {}); }),
               Catch::Contains("a connection of site s0 to site s1 broke"));
    const auto generations = run_ranks(2, [&](int site) {
      const auto generation = party.members[site]->arrive(kFirst, {}, "aa", {})->generation;
      party.members[site]->vote(kFirst, "bb", {});
      return generation;
    });
    CHECK(generations == std::vector<int64_t>{2, 2});
  }
}

TEST_CASE("without sites to spare the loss of an accused one ends the run") {
  Party party(2, quick_deadlines());
  run_ranks(2, [&](int site) { party.members[site]->arrive(kFirst, {}, "aa", {}); });
  party.members[1].reset();
  CHECK_THAT(error_of<PeerError>([&] { party.members[0]->is_renewed(1, "s1", {}); }),
             Catch::StartsWith("site s1: silent"));
}

TEST_CASE("a listener of a generation hears of its loss, one of the next does not") {
  Party party(3, quick_deadlines(), 1);
  std::promise<std::string> heard;
  party.members[0]->on_peer_lost(
      1, [&](const std::string& site, const std::string&) { heard.set_value(site); });
  party.members[2]->leave(Outcome::kInterrupted, "a stop");
  CHECK(heard.get_future().get() == "s2");
  // It would be called at once: the next one is told of the loss that follows.
  std::promise<std::string> next;
  party.members[0]->on_peer_lost(
      2, [&](const std::string& site, const std::string&) { next.set_value(site); });
  party.members[1]->leave(Outcome::kInterrupted, "a stop");
  CHECK(next.get_future().get() == "s1");
}

}  // namespace
}  // namespace farstep::wan
