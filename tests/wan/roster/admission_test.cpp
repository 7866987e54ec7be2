#include "wan/roster/admission.h"

#include <limits>

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

RegisterMessage site(const std::string& name, Resume resume, std::vector<int64_t> rounds) {
  RegisterMessage message;
  message.site = name;
  message.resume = resume;
  message.resumable_syncs = std::move(rounds);
  return message;
}

TEST_CASE("sites start at the highest number of syncs that all can resume from") {
  struct Row {
    std::vector<std::vector<int64_t>> rounds;
    std::optional<int64_t> start;
  };
  const std::vector<Row> table = {
      {{{7}}, 7},
      {{{}}, std::nullopt},
      {{{3, 4}, {4, 5}}, 4},
      {{{5, 4, 3}, {3, 4, 5}, {2, 3, 4}}, 4},
      {{{1, 2}, {3}}, std::nullopt},
      {{{0, 1}, {0}}, 0},
      {{{1}, {1}, {}}, std::nullopt},
      {{{0}, {0}, {}}, 0},
      {{{}, {0}}, 0},
      {{{0, 5}, {0, 5}, {}}, std::nullopt},  // would lose five syncs
      {{{}, {}}, std::nullopt},
  };
  for (const auto& row : table) {
    std::vector<RegisterMessage> sites;
    for (const auto& rounds : row.rounds) sites.push_back(site("s", Resume::kAlways, rounds));
    CHECK(start_syncs_of(sites) == row.start);
  }
}

TEST_CASE("sites may offer a million checkpoints each") {
  std::vector<int64_t> low, high;
  for (int64_t syncs = 0; syncs < 1'000'000; ++syncs) {
    low.push_back(syncs);
    high.push_back(999'999 + syncs);
  }
  CHECK(start_syncs_of({site("a", Resume::kAlways, low), site("b", Resume::kAlways, high)}) ==
        999'999);
}

TEST_CASE("sites that do not resume start at the beginning whatever checkpoints they have") {
  CHECK(start_syncs_of({site("a", Resume::kNever, {4}), site("b", Resume::kNever, {})}) == 0);
}

TEST_CASE("a checkpoint that no run can have is refused") {
  CHECK_FALSE(objection_to_checkpoints(site("a", Resume::kAlways, {0, 7, 1'000'000'000'000'000})));
  for (const int64_t syncs :
       {int64_t{-1}, std::numeric_limits<int64_t>::min(), int64_t{1'000'000'000'000'001},
        std::numeric_limits<int64_t>::max()}) {
    const auto objection = objection_to_checkpoints(site("a", Resume::kAlways, {3, syncs}));
    REQUIRE(objection);
    CHECK_THAT(*objection, Catch::Contains("site a") && Catch::Contains(std::to_string(syncs)));
  }
}

TEST_CASE("a site whose run differs is told the JSON path of the first difference") {
  const Json run = Json::parse(R"({"name": "r", "outer": {"rounds": 20}})");
  auto newcomer = site("b", Resume::kNever, {});
  CHECK_FALSE(objection_to_run(newcomer, run));
  newcomer.run = run;
  CHECK_FALSE(objection_to_run(newcomer, run));
  newcomer.run = Json::parse(R"({"name": "r", "outer": {"rounds": 10}})");
  CHECK(objection_to_run(newcomer, run) ==
        "the run of site b (here) is not the coordinator's (there): outer.rounds: 10 here, 20 "
        "there");
}

TEST_CASE("a site with other facts is told both names and the fact") {
  auto a = site("a", Resume::kNever, {});
  auto b = site("b", Resume::kNever, {});
  a.facts = {{"data_digest", "11"}, {"parameters", 5}};
  b.facts = a.facts;
  CHECK_FALSE(objection_to_facts(b, a));
  b.facts.erase("data_digest");  // it serves alone, and has no data
  CHECK_FALSE(objection_to_facts(b, a));
  CHECK_FALSE(objection_to_facts(a, b));
  b.facts = a.facts;
  b.facts["parameters"] = 6;
  CHECK(objection_to_facts(b, a) ==
        "site b (here) does not fit site a (there): parameters: 6 here, 5 there");
}

TEST_CASE("either all sites resume or none") {
  const auto fresh = site("a", Resume::kNever, {});
  const auto resuming = site("b", Resume::kAlways, {2});
  const std::string text = "site b resumes from a checkpoint and site a does not: all or none must";
  CHECK(objection_to_resume(resuming, fresh) == text);
  CHECK(objection_to_resume(fresh, resuming) == text);
}

TEST_CASE("a site that resumes or begins anew follows the others") {
  const auto either = site("a", Resume::kAuto, {});
  CHECK_FALSE(objection_to_resume(either, site("b", Resume::kNever, {})));
  CHECK_FALSE(objection_to_resume(site("b", Resume::kAlways, {2}), either));
  struct Row {
    RegisterMessage other;
    std::optional<int64_t> start;
  };
  const std::vector<Row> table = {
      {site("b", Resume::kAuto, {}), 0},
      {site("b", Resume::kNever, {}), 0},
      {site("b", Resume::kAlways, {0}), 0},             // nobody has done a sync
      {site("b", Resume::kAlways, {2}), std::nullopt},  // beginning anew would lose two syncs
      {site("b", Resume::kAlways, {}), std::nullopt},   // was told to resume, and cannot
  };
  for (const auto& row : table) {
    CHECK(start_syncs_of({either, row.other}) == row.start);
    CHECK(start_syncs_of({row.other, either}) == row.start);
  }
}

TEST_CASE("sites without a common checkpoint are told whose to copy") {
  CHECK(no_common_start_text({site("a", Resume::kAlways, {2}), site("b", Resume::kAlways, {2, 3}),
                              site("c", Resume::kAlways, {})},
                             "rounds") ==
        "there is no number of rounds done that all sites have a checkpoint of: a has [2], b has "
        "[2, 3], c has []; copy the folder checkpoints of site b into the output folder of a and "
        "of c, then start all sites with --resume again");
  CHECK_THAT(no_common_start_text({site("a", Resume::kAlways, {}), site("b", Resume::kAlways, {})},
                                  "rounds"),
             Catch::Contains("no site has a checkpoint") && Catch::Contains("without --resume"));
}

}  // namespace
}  // namespace farstep::wan
