#include "wan/admission/admission.h"

#include <limits>

#include "tests/support/catch.h"

namespace farstep::wan {
namespace {

RegisterMessage site(const std::string& name, Resume resume) {
  RegisterMessage message;
  message.site = name;
  message.resume = resume;
  return message;
}

TEST_CASE("a checkpoint that cannot be is refused") {
  auto newcomer = site("a", Resume::kAlways);
  newcomer.states = {{3, "00ff", {}, {"a", "b"}}, {4, "", {}, {}}};
  CHECK_FALSE(objection_to_states(newcomer));
  for (const auto* hash : {"00FF", "x", "00112233445566778"}) {
    auto wrong = newcomer;
    wrong.states[1].theta_hash = hash;
    CHECK_THAT(objection_to_states(wrong).value(), Catch::Contains("site a offers"));
  }
  for (const int64_t count : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    auto wrong = newcomer;
    wrong.states[1].syncs = count;
    CHECK_THAT(objection_to_states(wrong).value(), Catch::Contains("no run can have done"));
    wrong = newcomer;
    wrong.states[1].round = count;
    CHECK_THAT(objection_to_states(wrong).value(), Catch::Contains("no run can have done"));
  }
  newcomer.states[0].members[1] = "../b";
  CHECK_THAT(objection_to_states(newcomer).value(), Catch::Contains("site a offers"));
}

TEST_CASE("a site whose run differs is told the JSON path of the first difference") {
  const Json run = Json::parse(R"({"name": "r", "outer": {"rounds": 20}})");
  auto newcomer = site("b", Resume::kNever);
  CHECK_FALSE(objection_to_run(newcomer, run));
  newcomer.run = run;
  CHECK_FALSE(objection_to_run(newcomer, run));
  newcomer.run = Json::parse(R"({"name": "r", "outer": {"rounds": 10}})");
  CHECK(objection_to_run(newcomer, run) ==
        "the run of site b (here) is not the coordinator's (there): outer.rounds: 10 here, 20 "
        "there");
}

TEST_CASE("a site with other facts is told both names and the fact") {
  auto a = site("a", Resume::kNever);
  auto b = site("b", Resume::kNever);
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

TEST_CASE("sites whose Gloo cannot connect are told to build with one release of it") {
  auto a = site("a", Resume::kNever);
  auto b = site("b", Resume::kNever);
  a.facts = {{"gloo_release", "of before May 2023"}};
  b.facts = {{"gloo_release", "of May 2023 or later"}};
  CHECK(objection_to_facts(b, a) ==
        "site b (here) does not fit site a (there): gloo_release: \"of May 2023 or later\" here, "
        "\"of before May 2023\" there; build Farstep at both with Gloo of one release, as "
        "libgloo-dev of one Debian is");
}

TEST_CASE("either all sites resume or none") {
  const auto fresh = site("a", Resume::kNever);
  const auto resuming = site("b", Resume::kAlways);
  const std::string text = "site b resumes from a checkpoint and site a does not: all or none must";
  CHECK(objection_to_resume(resuming, fresh) == text);
  CHECK(objection_to_resume(fresh, resuming) == text);
}

TEST_CASE("a site that resumes or begins anew fits all others") {
  const auto either = site("a", Resume::kAuto);
  CHECK_FALSE(objection_to_resume(either, site("b", Resume::kNever)));
  CHECK_FALSE(objection_to_resume(site("b", Resume::kAlways), either));
}

}  // namespace
}  // namespace farstep::wan
