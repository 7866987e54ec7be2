#include "heterogeneity/simulate/simulation_result.h"

#include <algorithm>

#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {

TEST_CASE("the JSON has means a round and their total over the sites") {
  auto json = scenario_json({0.1, 0.2, 0.4}, "uniform");
  json["rounds"] = 4;
  json["sites"][1]["joins_at_round"] = 3;  // half of the rounds
  const auto printed = simulation_json(simulate(scenario_of(json)));
  CHECK(printed.size() == 5);
  CHECK(printed["rounds"] == 4);
  const std::vector<double> compute{10, 10, 40};
  const std::vector<double> idle{30, 10, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& site = printed["sites"][i];
    CHECK(site.size() == 7);
    CHECK(site["site"] == "s" + std::to_string(i));
    CHECK(site["compute_seconds"].get<double>() == Approx(compute[i]));
    CHECK(site["idle_seconds"].get<double>() == Approx(idle[i]).margin(1e-9));
    CHECK(site["wan_seconds"] == 0);
    CHECK(site["serve_seconds"] == 0);
    CHECK(site["hidden_wan_seconds"] == 0);
  }
  CHECK(printed["total_idle_seconds"].get<double>() == Approx(40));
  // 100 steps a round of the same batch, in rounds of 40 s; the second site takes part in half.
  const auto tokens = printed["sites"][0]["tokens"].get<int64_t>();
  CHECK(tokens > 0);
  CHECK(printed["sites"][1]["tokens"].get<int64_t>() * 2 == tokens);
  CHECK(printed["run_seconds"].get<double>() == Approx(160));
  CHECK(printed["tokens_per_second"].get<double>() * 160 ==
        Approx(2.5 * static_cast<double>(tokens)));
}

TEST_CASE("the table has a line a site and stays short for many sites and rounds") {
  for (const std::size_t count : {1, 2, 40, 41, 500}) {
    auto json = scenario_json(std::vector<double>(count, 0.2), "uniform");
    json["rounds"] = count < 500 ? 3 : 60;
    json["plan"]["base_steps"] = 2;
    const auto scenario = scenario_of(json);
    const auto text = simulation_text(scenario, simulate(scenario));
    CHECK(std::count(text.begin(), text.end(), '\n') <= 50);
    CHECK_THAT(text, Catch::Contains("s0 ") && Catch::Contains("total"));
    CHECK((text.find("more") != std::string::npos) == (count > 40));
    CHECK_THAT(text, Catch::Contains(count < 500 ? "  3:  0.0 %" : " 60:  0.0 %"));
  }
}

}  // namespace farstep::heterogeneity
