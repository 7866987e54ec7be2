#include "wan/admission/common_start.h"

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

using Names = std::vector<std::string>;

const Names kThree = {"a", "b", "c"};

// After so many syncs of these members.
OfferedState state(int64_t syncs, Names members = kThree, const std::string& hash = "aa") {
  return {.syncs = syncs, .theta_hash = hash, .members = std::move(members)};
}

RegisterMessage having(const std::string& name, std::vector<OfferedState> states,
                       Resume resume = Resume::kAlways) {
  RegisterMessage message;
  message.site = name;
  message.resume = resume;
  message.states = std::move(states);
  return message;
}

ServedRun run_with(int64_t min_sites) {
  return {.config = {}, .sites = kThree, .min_sites = min_sites};
}

struct Row {
  std::vector<std::vector<OfferedState>> states;  // of a, b, c
  std::optional<int64_t> syncs;
  Names members;
  bool has_newest_members = false;
  bool leaves_some = false;
};

void check(const Row& row, int64_t least_sites) {
  std::vector<RegisterMessage> sites;
  for (const auto& states : row.states) {
    sites.push_back(having(std::string(1, static_cast<char>('a' + sites.size())), states));
  }
  const auto start = common_start_of(sites, run_with(least_sites));
  REQUIRE(start.has_value() == row.syncs.has_value());
  if (!start) return;
  CHECK(start->state.syncs == row.syncs);
  CHECK(start->members == row.members);
  CHECK(start->has_newest_members == row.has_newest_members);
  CHECK(!start->left.empty() == row.leaves_some);
}

}  // namespace

TEST_CASE("sites begin with the newest state that most of those have that took part in it") {
  const Names two = {"a", "b"};
  const std::vector<Row> table = {
      {{{state(7, {"a"})}}, 7, {"a"}, true},
      // All stopped at once, and one of them before its newest checkpoint was written.
      {{{state(6, two), state(5, two)}, {state(5, two), state(4, two)}}, 5, two, true, true},
      {{{state(6), state(5)}, {state(6), state(5)}, {state(5), state(4)}}, 6, two, true},
      {{{state(6), state(5)}, {state(5), state(4)}, {state(5)}}, 5, kThree, true, true},
      // Two have gone on without the third.
      {{{state(6, two), state(5, two)}, {state(6, two), state(5, two)}, {state(1), state(0)}},
       6,
       two,
       true},
      {{{state(6, two)}, {state(6, two)}}, 6, two, true},  // and it is not there
      // A disk is new, or its checkpoints are damaged.
      {{{state(6)}, {state(6)}, {}}, 6, two, true},
      {{{state(6, two)}, {}}, 6, {"a"}, true},
      // One went on alone, and the others do not know.
      {{{state(3)}, {state(3)}, {state(6, {"c"})}}, 6, {"c"}, true},
      {{{state(3)}, {state(3)}}, 3, two},
      // Of an older version, which does not say who took part.
      {{{state(6, {})}, {state(6, {})}, {state(5, {})}}, 6, two},
      {{{state(6, {})}, {state(5, {})}, {state(5, {}), state(4, {})}}, 5, {"b", "c"}, false, true},
      {{{}, {}}, std::nullopt, {}},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    CAPTURE(i);
    check(table[i], 1);
  }
}

TEST_CASE("without a majority the newest state counts that enough sites have, then the newest") {
  const Names four = {"a", "b", "c", "d"};
  // Each has another one, but for two.
  const std::vector<std::vector<OfferedState>> states = {
      {state(8, four)}, {state(7, four)}, {state(7, four)}};
  check({states, 8, {"a"}}, 1);
  check({states, 7, {"b", "c"}, false, true}, 2);
  check({states, 8, {"a"}}, 3);
}

TEST_CASE("a run that needs all sites begins with a state that all have, if there is one") {
  check({{{state(6), state(5)}, {state(6), state(5)}, {state(5), state(4)}}, 5, kThree, true, true},
        3);
  check({{{state(6), state(5)}, {state(6), state(5)}, {state(4)}}, 6, {"a", "b"}, true}, 3);
  check({{{state(6)}, {state(6)}, {}}, 6, {"a", "b"}, true}, 3);
}

TEST_CASE("a run that takes no newcomers needs a state that all have") {
  auto run = run_with(3);
  run.takes_newcomers = false;
  std::vector<RegisterMessage> sites = {having("a", {state(3), state(0)}),
                                        having("b", {state(3), state(0)}), having("c", {state(0)})};
  const auto start = common_start_of(sites, run);
  REQUIRE(start);
  CHECK((start->state.syncs == 0 && start->members == kThree && !start->left.empty()));
  sites[2].states.clear();
  CHECK_FALSE(common_start_of(sites, run));
  CHECK(
      no_common_start_text(sites) ==
      "the sites have no checkpoint in common, and this run takes in no site that has none: a has "
      "those after 3, 0 syncs, b has those after 3, 0 syncs, c has those after no syncs; copy the "
      "folder checkpoints of site a into the output folder of c, then start all sites with "
      "--resume again");
  CHECK_THAT(no_common_start_text({having("a", {}), having("b", {})}),
             Catch::Contains("no site has a checkpoint") && Catch::Contains("without --resume"));
}

TEST_CASE("states after as many syncs are equal only with equal weights") {
  check({{{state(5)}, {state(5, kThree, "bb")}, {state(5)}}, 5, {"a", "c"}, true, true}, 1);
}

TEST_CASE("the text says what is taken and what is left") {
  const auto start = common_start_of({having("a", {state(6), state(5)}), having("b", {state(5)}),
                                      having("c", {state(5), state(5, {"c"}, "bb")})},
                                     run_with(1));
  REQUIRE(start);
  CHECK(start->left ==
        "the run begins with the state after 5 rounds of site a, b, c, and leaves that after 6 "
        "rounds of site a, that after 5 rounds, with other weights, of site c");
}

TEST_CASE("sites that have done no sync begin anew together") {
  const auto anew = [](const std::vector<RegisterMessage>& sites) {
    const auto start = common_start_of(sites, run_with(1));
    return start && start->state.syncs == 0 && start->members.size() == sites.size();
  };
  const std::vector<OfferedState> none = {state(0)}, two = {state(2)};
  CHECK(anew({having("a", none), having("b", {}), having("c", {})}));
  CHECK(anew({having("a", two, Resume::kNever), having("b", {}, Resume::kNever)}));
  CHECK(anew({having("a", {}, Resume::kAuto), having("b", {}, Resume::kNever)}));
  CHECK(anew({having("a", {}, Resume::kAuto), having("b", none)}));
  // Two syncs count more than a fresh start.
  CHECK_FALSE(anew({having("a", {}, Resume::kAuto), having("b", two)}));
  // Was told to resume, and cannot.
  CHECK_FALSE(common_start_of({having("a", {}, Resume::kAuto), having("b", {})}, run_with(1)));
}

TEST_CASE("sites may offer very many checkpoints each") {
  std::vector<OfferedState> low, high;
  for (int64_t syncs = 0; syncs < 100'000; ++syncs) {
    low.push_back(state(syncs, {"a", "b"}));
    high.push_back(state(99'999 + syncs, {"a", "b"}));
  }
  CHECK(common_start_of({having("a", low), having("b", high)}, run_with(1))->state.syncs == 99'999);
}

}  // namespace farstep::wan
