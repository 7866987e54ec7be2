#include "trainer/init/next_steps.h"

#include "tests/support/catch.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("the next steps are commands for every site, that copy no other site's key") {
  InitPlan plan;
  plan.run = "mine";
  plan.sites = {{"seoul", "203.0.113.10", std::nullopt}, {"home", "", std::nullopt}};
  plan.host = "seoul";
  plan.data = "data/mine";
  const auto text = next_steps(plan, "mine");
  CHECK_THAT(text, Contains("tar -C mine -cf - run.json seoul.json keys/sites/seoul | ssh "
                            "USER@203.0.113.10 'mkdir -p mine && tar -C mine -xf -'"));
  CHECK_THAT(text, Contains("keys/sites/home | ssh USER@home "));
  CHECK_THAT(text, Contains("home: farstep doctor mine/home.json --peers"));
  CHECK_THAT(text, Contains("seoul: farstep train --config mine/seoul.json --resume=auto"));
  CHECK_THAT(text, Contains("mine/keys/authority.key"));
  CHECK_THAT(text, Contains("min_sites 1. Only seoul"));
  plan.has_keys = false;
  CHECK_THAT(next_steps(plan, "mine"), !Contains("keys"));
  // A folder with a space is one word at both ends.
  CHECK_THAT(next_steps(plan, "my run"),
             Contains("tar -C 'my run' -cf - run.json") && Contains("'\\''my run'\\''"));
  plan.sites.push_back({"lyon", "198.51.100.7", std::nullopt});
  CHECK_THAT(next_steps(plan, "mine"), Contains("while 2 of the 3 are there"));
  plan.sites = {{"seoul", "203.0.113.10", std::nullopt}};
  CHECK_THAT(next_steps(plan, "mine"), !Contains("min_sites"));
}

}  // namespace farstep
