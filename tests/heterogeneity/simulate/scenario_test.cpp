#include "heterogeneity/simulate/scenario.h"

#include <fstream>

#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

std::string refusal(const Json& json) {
  try {
    scenario_of(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Json two_sites() {
  return scenario_json({0.25, 0.5}, "uniform");
}

}  // namespace

TEST_CASE("what a scenario prints is read back as the same") {
  auto json = two_sites();
  json["sites"][0]["count"] = 3;
  json["sites"][1]["speed"] = Json::array({{{"round", 2}, {"times", 1.5}}});
  const auto scenario = scenario_of(json);
  CHECK(to_json(scenario_of(to_json(scenario))) == to_json(scenario));
}

TEST_CASE("sites alike get numbers of equal width and everything else of the entry") {
  auto json = two_sites();
  json["sites"][1]["name"] = "many";
  json["sites"][1]["count"] = 12;
  json["sites"][1]["jitter"] = 0.1;
  const auto scenario = scenario_of(json);
  REQUIRE(scenario.sites.size() == 13);
  CHECK(scenario.sites[0].name == "s0");
  CHECK(scenario.sites[1].name == "many-01");
  CHECK(scenario.sites[12].name == "many-12");
  for (std::size_t i = 1; i < 13; ++i) {
    CHECK(scenario.sites[i].profile->site == scenario.sites[i].name);
    CHECK(scenario.sites[i].count == 1);
    CHECK(scenario.sites[i].jitter == 0.1);
  }
  CHECK(scenario.coordinator == "s0");
}

TEST_CASE("a profile file is looked up beside the scenario and its model is taken") {
  const TemporaryFolder folder;
  auto profile = site_json("far", 0.5)["profile"];
  profile["model"] = {{"parameters", 1000}, {"sequence_length", 64}, {"compute", "fp32"}};
  std::ofstream(folder / "far.json") << profile;
  auto json = two_sites();
  json["sites"].push_back({{"profile_file", "far.json"}});
  const auto scenario = scenario_from_json(json, "test.json", folder.path());
  CHECK(scenario.sites[2].name == "far");
  CHECK(scenario.parameters == 1000);
  CHECK(scenario.sequence_length == 64);
}

TEST_CASE("a scenario that cannot be simulated is refused by file and path") {
  auto json = two_sites();
  std::string expected;
  SECTION("two sites of one name") {
    json["sites"][1]["name"] = "s0";
    expected = "'s0' is the site of sites[0].profile already";
  }
  SECTION("a name that is no folder") {
    json["sites"][1]["name"] = "a/b";
    expected = "test.json: sites[1].profile.site: 'a/b'";
  }
  SECTION("no step times") {
    json["sites"][1]["profile"]["devices"][0].erase("step_seconds");
    expected = "sites[1].profile.devices: s1 has a device without step_seconds";
  }
  SECTION("no profile") {
    json["sites"][1].erase("profile");
    expected = "sites[1]: must have one of profile and profile_file";
  }
  SECTION("two profiles") {
    json["sites"][1]["profile_file"] = "a.json";
    expected = "sites[1]: must have one of profile and profile_file";
  }
  SECTION("an unknown peer") {
    json["sites"][1]["profile"]["links"] = Json::array({{{"peer", "nobody"}}});
    expected = "sites[1].profile.links[0].peer: 'nobody'";
  }
  SECTION("another model") {
    for (int i = 0; i < 2; ++i) {
      json["sites"][i]["profile"]["model"] = {
          {"parameters", 10 + i}, {"sequence_length", 64}, {"compute", "fp32"}};
    }
    expected = "sites[1].profile.model: differs from that of s0";
  }
  SECTION("zero rounds") {
    json["rounds"] = 0;
    expected = "test.json: rounds: is 0; must be at least 1";
  }
  SECTION("no sites") {
    json["sites"] = Json::array();
    expected = "test.json: sites";
  }
  SECTION("an unknown member") {
    json["sites"][1]["jiter"] = 0.1;
    expected = "sites[1].jiter";
  }
  SECTION("more fragments than steps") {
    json["sync"]["fragments"] = 101;
    expected = "test.json: sync.fragments: 101 fragments";
  }
  SECTION("a sync that is not simulated") {
    json["sync"]["shares"] = "bandwidth";
    expected = "test.json: sync.shares: is not simulated";
  }
  SECTION("a strategy that is not simulated") {
    json["strategy"]["kind"] = "eager_updates";
    expected = "test.json: strategy.kind: is not simulated";
  }
  SECTION("a batch that follows gradients") {
    json["plan"]["batch_growth"] = {{"most_batch", 64}};
    expected = "test.json: plan.batch_growth: follows the noise of gradients";
  }
  SECTION("gradients of a run that somebody joins") {
    json["strategy"]["kind"] = "ring_all_reduce";
    json["sites"][0]["joins_at_round"] = 2;
    expected = "test.json: strategy.kind: takes no site in";
  }
  SECTION("changes of speed out of order") {
    json["sites"][0]["speed"] =
        Json::array({{{"round", 4}, {"times", 2}}, {{"round", 4}, {"times", 1}}});
    expected = "sites[0].speed[1].round: is 4";
  }
  SECTION("a site that never joins") {
    json["sites"][0]["joins_at_round"] = 11;
    expected = "sites[0].joins_at_round: is 11; the run has 10 rounds";
  }
  SECTION("nobody at the start") {
    for (auto& site : json["sites"]) site["joins_at_round"] = 2;
    expected = "sites: no site takes part from round 1 on";
  }
  SECTION("an unknown coordinator") {
    json["coordinator"] = "c";
    expected = "coordinator: 'c' is no site";
  }
  SECTION("a region without sites") {
    json["sites"][0]["region"] = "y";
    json["regions"] = Json::array({{{"from", "y"}, {"to", "x"}, {"rtt_seconds", 0.1}}});
    expected = "regions[0].to: no site is in 'x'";
  }
  SECTION("a pair of regions that stands twice") {
    json["sites"][0]["region"] = "x";
    json["sites"][1]["region"] = "y";
    json["regions"] = Json::array({{{"from", "y"}, {"to", "x"}, {"rtt_seconds", 0.1}},
                                   {{"from", "x"}, {"to", "y"}, {"rtt_seconds", 0.1}}});
    expected = "regions[1]: 'x' and 'y' stand twice";
  }
  CHECK_THAT(refusal(json), Catch::Contains(expected));
}

}  // namespace farstep::heterogeneity
