#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {

TEST_CASE("a thousand sites over five continents are planned within a few rounds") {
  auto json = shipped_json("five_continents.json");
  const auto scenario = shipped_scenario(json);
  REQUIRE(scenario.sites.size() == 1000);
  const auto result = simulate(scenario);
  // Round 5 has joiners; in round 10 some sites slow down and in round 15 they are back.
  for (const std::size_t round : {3, 4, 8, 9, 13, 14, 18, 19, 20}) {
    CHECK(result.idle_fractions[round - 1] <= 0.02);
  }
}

}  // namespace farstep::heterogeneity
