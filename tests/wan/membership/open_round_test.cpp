#include "wan/membership/open_round.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

OpenRound round_with_hashes(const std::vector<std::string>& hashes) {
  std::vector<std::string> sites;
  for (std::size_t i = 0; i < hashes.size(); ++i) sites.push_back("site" + std::to_string(i));
  OpenRound round(1, 5, sites);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    round.arrive(sites[i], ArriveMessage{1, 5, {}, hashes[i]});
    round.vote(sites[i], VoteMessage{1, 5, hashes[i]});
  }
  return round;
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
    const auto round = round_with_hashes(row.hashes);
    CHECK(round.all_arrived());
    CHECK(round.all_voted());
    CHECK(round.differing_arrivals() == row.named);
    CHECK(round.differing_votes() == row.named);
  }
}

TEST_CASE("contributions go out in the order of site ids whoever arrives first") {
  OpenRound round(2, 7, {"z", "a", "m"});
  CHECK_FALSE(round.anyone_arrived());
  round.arrive("m", ArriveMessage{2, 7, {3, 1, 1}, "aa"});
  round.arrive("a", ArriveMessage{2, 7, {2, 1, 1}, "aa"});
  CHECK(round.anyone_arrived());
  CHECK_FALSE(round.all_arrived());
  CHECK_THROWS_AS(round.go(), InternalError);
  round.arrive("z", ArriveMessage{2, 7, {1, 1, 1}, "aa"});
  const Go go = round.go();
  CHECK(go.generation == 2);
  CHECK(go.round == 7);
  CHECK(go.contributions == std::vector<Contribution>{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}});
}

TEST_CASE("an arrival that is repeated counts once") {
  OpenRound round(1, 0, {"a", "b"});
  round.arrive("a", ArriveMessage{1, 0, {1, 1, 1}, "aa"});
  round.arrive("a", ArriveMessage{1, 0, {1, 1, 1}, "aa"});
  CHECK_FALSE(round.all_arrived());
}

}  // namespace
}  // namespace farstep
