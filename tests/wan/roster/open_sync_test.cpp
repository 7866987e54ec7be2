#include "wan/roster/open_sync.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

OpenSync sync_with_hashes(const std::vector<std::string>& hashes) {
  std::vector<std::string> sites;
  for (std::size_t i = 0; i < hashes.size(); ++i) sites.push_back("site" + std::to_string(i));
  OpenSync sync(1, {5, 2}, sites);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    sync.arrive(sites[i], ArriveMessage{1, 5, 2, {}, hashes[i]});
    sync.vote(sites[i], VoteMessage{1, 5, 2, hashes[i]});
  }
  return sync;
}

TEST_CASE("sites that differ from the majority are named and without one all are") {
  struct Row {
    std::vector<std::string> hashes;
    std::string named;
  };
  const std::vector<Row> table = {
      {{"aa"}, ""},
      {{"aa", "aa", "aa"}, ""},
      {{"aa", "bb", "aa"}, "site1 (bb)"},
      {{"bb", "aa", "aa", "cc", "aa"}, "site0 (bb), site3 (cc)"},
      {{"aa", "bb"}, "site0 (aa), site1 (bb)"},
      {{"aa", "aa", "bb", "bb"}, "site0 (aa), site1 (aa), site2 (bb), site3 (bb)"},
  };
  for (const auto& row : table) {
    const auto sync = sync_with_hashes(row.hashes);
    CHECK(sync.all_arrived());
    CHECK(sync.all_voted());
    CHECK(sync.differing_arrivals() == row.named);
    CHECK(sync.differing_votes() == row.named);
  }
}

TEST_CASE("contributions go out in the order of site ids whoever arrives first") {
  OpenSync sync(2, {7, 1}, {"z", "a", "m"});
  CHECK_FALSE(sync.anyone_arrived());
  sync.arrive("m", ArriveMessage{2, 7, 1, {{3, 1, 1}}, "aa"});
  sync.arrive("a", ArriveMessage{2, 7, 1, {{2, 1, 1}}, "aa"});
  CHECK(sync.anyone_arrived());
  CHECK_FALSE(sync.all_arrived());
  CHECK_THROWS_AS(sync.go(), InternalError);
  sync.arrive("z", ArriveMessage{2, 7, 1, {{1, 1, 1}}, "aa"});
  sync.start({});
  const Go go = sync.go();
  CHECK(go.generation == 2);
  CHECK(go.round == 7);
  CHECK(go.fragment == 1);
  CHECK(go.contributions == std::vector<Contribution>{{{1, 1, 1}}, {{2, 1, 1}}, {{3, 1, 1}}});
}

TEST_CASE("donors have trained and go on, and those with the fastest uplink come first") {
  OpenSync sync(1, {1, 0}, {"a", "b", "c", "d", "e"});
  const auto arrive = [&](const std::string& site, int64_t steps, double uplink, bool is_leaving) {
    ArriveMessage message{1, 1, 0, {{steps, 1, 1}}, "aa"};
    message.contribution.timing.uplink_bits_per_second = uplink;
    message.contribution.timing.is_leaving = is_leaving;
    sync.arrive(site, message);
  };
  arrive("a", 1, 0, false);
  arrive("b", 1, 5, false);
  arrive("c", 0, 9, false);  // only attends
  arrive("d", 1, 5, false);
  arrive("e", 1, 9, true);
  CHECK(sync.donors() == std::vector<std::string>{"b", "d", "a"});
}

TEST_CASE("an arrival that is repeated counts once") {
  OpenSync sync(1, {1, 0}, {"a", "b"});
  sync.arrive("a", ArriveMessage{1, 1, 0, {{1, 1, 1}}, "aa"});
  sync.arrive("a", ArriveMessage{1, 1, 0, {{1, 1, 1}}, "aa"});
  CHECK_FALSE(sync.all_arrived());
}

TEST_CASE("all members' deltas are judged once, and one that is left out makes no donor") {
  int times = 0;
  const auto judge = [&](std::span<const std::string> sites,
                         std::span<const Contribution> contributions) -> std::vector<Outlier> {
    ++times;
    REQUIRE(sites.size() == contributions.size());
    return {{sites[0], false, "is odd"}, {sites[2], true, "is broken"}};
  };
  OpenSync sync(1, {1, 0}, {"a", "b", "c"}, judge);
  for (const std::string site : {"b", "c", "a", "a", "c"}) {
    sync.arrive(site, ArriveMessage{1, 1, 0, {{1, 1, 1}}, "aa"});
  }
  CHECK(times == 1);
  CHECK(sync.donors() == std::vector<std::string>{"a", "b"});
  sync.start({});
  CHECK(sync.go().outliers ==
        std::vector<Outlier>{{"a", false, "is odd"}, {"c", true, "is broken"}});
}

}  // namespace
}  // namespace farstep::wan
