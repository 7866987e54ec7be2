#include "trainer/peers/known_sites.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

const heterogeneity::ProfiledModel kModel{
    .parameters = 1000, .sequence_length = 64, .compute = "bf16"};

Json profile_of(const std::string& site) {
  return {{"site", site},
          {"devices",
           {{{"name", "card"},
             {"step_seconds",
              {{{"micro_batch", 2}, {"seconds", 0.3}}, {{"micro_batch", 4}, {"seconds", 0.5}}}}},
            {{"name", "other card"}}}}};
}

RunConfig two_sites() {
  return run_config_from_json(
      Json::parse(R"({"name":"r","sites":[{"name":"a","local_steps":7},{"name":"b"}]})"), "run");
}

wan::Welcome welcome_to_a_and_b() {
  wan::Welcome welcome;
  welcome.sites = {"a", "b"};
  return welcome;
}

}  // namespace

TEST_CASE("a run's sites are known by what they brought") {
  auto welcome = welcome_to_a_and_b();
  welcome.first_sites = {{"a", nullptr}, {"b", profile_of("b")}};
  const auto sites = known_sites(two_sites(), welcome, kModel);
  REQUIRE(sites.size() == 2);
  CHECK(sites[0].site == "a");
  CHECK(sites[0].pins.local_steps == 7);
  CHECK_FALSE(sites[0].profile);
  CHECK(sites[1].profile->devices.size() == 2);
}

TEST_CASE("profiles are of the sites with which the run began, whoever is a member") {
  wan::Welcome welcome;
  welcome.sites = {"b"};
  welcome.first_sites = {{"a", nullptr}, {"b", profile_of("b")}};
  const auto sites = known_sites(two_sites(), welcome, kModel);
  CHECK_FALSE(sites[0].profile);
  CHECK(sites[1].profile->site == "b");
}

TEST_CASE("a site that an open run does not name is known too") {
  auto welcome = welcome_to_a_and_b();
  welcome.first_sites = {{"b", profile_of("b")}, {"c", profile_of("c")}};
  const auto sites = known_sites(two_sites(), welcome, kModel);
  REQUIRE(sites.size() == 3);
  CHECK_FALSE(sites[0].profile);
  CHECK(sites[2].site == "c");
  CHECK(sites[2].profile->site == "c");
}

TEST_CASE("a profile of another model is refused") {
  auto profile = profile_of("b");
  profile["model"] = {{"parameters", 1000}, {"sequence_length", 128}, {"compute", "bf16"}};
  auto welcome = welcome_to_a_and_b();
  welcome.first_sites = {{"a", nullptr}, {"b", profile}};
  CHECK_THROWS_AS(known_sites(two_sites(), welcome, kModel), ConfigError);
  CHECK_THROWS_WITH(known_sites(two_sites(), welcome, kModel),
                    Catch::Contains("profile of site b") && Catch::Contains("sequences of 128"));
  welcome.first_sites[1].profile["model"]["sequence_length"] = 64;
  CHECK(known_sites(two_sites(), welcome, kModel)[1].profile->model == kModel);
}

TEST_CASE("a run that is to choose its sync connects as profiled links need") {
  auto welcome = welcome_to_a_and_b();
  for (const auto& [site, peer] : {std::pair{"a", "b"}, {"b", "a"}}) {
    auto profile = profile_of(site);
    profile["links"] = {
        {{"peer", peer}, {"rtt_seconds", 0.2}, {"bandwidth_bits_per_second", 2.5e8}}};
    welcome.first_sites.push_back({site, std::move(profile)});
  }
  auto run = two_sites();
  CHECK_FALSE(planned_lanes(run, welcome));
  run.plan.wan_target = 0.05;
  CHECK(planned_lanes(run, welcome) == 7);
  welcome.first_sites[0].profile["links"] = Json::array();
  CHECK_FALSE(planned_lanes(run, welcome));
  welcome.first_sites.clear();
  CHECK_FALSE(planned_lanes(run, welcome));
}

TEST_CASE("devices that were timed are known by their seconds a sequence") {
  const auto profile = heterogeneity::site_profile_from_json(profile_of("b"), "b.json");
  const auto seconds = known_sequence_seconds(profile, 3);
  REQUIRE(seconds.size() == 3);
  CHECK(*seconds[0] == Approx(0.1));
  CHECK_FALSE(seconds[1]);
  CHECK_FALSE(seconds[2]);
  CHECK(known_sequence_seconds(std::nullopt, 2).size() == 2);
}

TEST_CASE("a site brings its own profile and no other") {
  const TemporaryFolder folder;
  SiteConfig site;
  site.name = "b";
  CHECK(own_profile(site).is_null());
  site.profile = (folder / "b.profile.json").string();
  CHECK_THROWS_AS(own_profile(site), ConfigError);
  write_file_durably(site.profile, profile_of("b").dump());
  CHECK(own_profile(site)["site"] == "b");
  site.name = "a";
  CHECK_THROWS_WITH(own_profile(site), Catch::Contains("site: is 'b'; this site is 'a'"));
}

}  // namespace farstep
