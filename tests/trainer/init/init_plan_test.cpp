#include "trainer/init/init_plan.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

using Catch::Contains;

TEST_CASE("a site is a name, with an address, with a port") {
  struct Row {
    std::string text;
    PlannedSite site;
  };
  const Row rows[] = {
      {"lyon", {"lyon", "", std::nullopt}},
      {"lyon=198.51.100.4", {"lyon", "198.51.100.4", std::nullopt}},
      {"lyon=lyon.example:7500", {"lyon", "lyon.example", 7500}},
      {"lyon=2001:db8::7", {"lyon", "2001:db8::7", std::nullopt}},
      {"lyon=[2001:db8::7]", {"lyon", "2001:db8::7", std::nullopt}},
      {"lyon=[2001:db8::7]:65000", {"lyon", "2001:db8::7", 65000}},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(parse_planned_site(row.text) == row.site);
  }
  for (const std::string text :
       {"lyon=", "lyon=:7400", "lyon=10.0.0.1:", "lyon=10.0.0.1:0", "lyon=10.0.0.1:65001",
        "lyon=10.0.0.1:7400x", "lyon=[::1", "lyon=[::1]7400", "lyon=[::1]:"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_planned_site(text), Contains("--sites " + text));
  }
}

TEST_CASE("the outer settings follow the guide's table") {
  CHECK(outer_advice(200, 500, 65'536).learning_rate == 1.0);
  CHECK(outer_advice(8, 50, 1000).momentum == 0.7);
  for (const auto& advice :
       {outer_advice(7, 50, 1000), outer_advice(8, 49, 1000), outer_advice(8, 50, 999)}) {
    CHECK(advice.learning_rate == 0.7);
    CHECK(advice.momentum == 0.5);
  }
}

TEST_CASE("a plan that cannot become a run is refused in words of the command line") {
  InitPlan plan;
  plan.run = "mine";
  plan.sites = {{"a", "10.0.0.1", std::nullopt}, {"b", "", std::nullopt}};
  plan.host = "a";
  CHECK_NOTHROW(check_plan(plan));
  const auto refused = [&](auto change) {
    auto wrong = plan;
    change(wrong);
    try {
      check_plan(wrong);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused([](auto& wrong) { wrong.host = "c"; }), Contains("--host: c is none"));
  CHECK_THAT(refused([](auto& wrong) { wrong.host = "b"; }), Contains("b has no address"));
  CHECK_THAT(refused([](auto& wrong) { wrong.has_keys = false; }), Contains("--no-keys: b"));
  CHECK_THAT(refused([](auto& wrong) {
               wrong.sites.push_back({"a", "10.0.0.2", {}});
             }),
             Contains("a stands twice"));
  CHECK_THAT(refused([](auto& wrong) {
               wrong.sites.push_back({"c", "", {}});
             }),
             Contains("b, c have no address"));
  CHECK_THAT(refused([](auto& wrong) {
               wrong.sites.push_back({"run", "10.0.0.2", {}});
             }),
             Contains("cannot be called run"));
}

TEST_CASE("a run goes on with one of two sites, else with more than half") {
  const std::vector<int64_t> expected = {1, 1, 2, 3, 3, 4, 4, 5};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(least_sites_of(i + 1) == expected[i]);
}

TEST_CASE("a device is of every site or of one") {
  InitPlan plan;
  plan.sites = {{"office", "203.0.113.10", std::nullopt}, {"home", "", std::nullopt}};
  set_devices(plan, {});
  CHECK(best_device(plan) == DeviceKind::kCpu);
  set_devices(plan, {"office=cuda"});
  CHECK(best_device(plan) == DeviceKind::kCuda);
  CHECK(site_of(plan, "office").device == DeviceKind::kCuda);
  CHECK_FALSE(site_of(plan, "home").device);
  set_devices(plan, {"cuda", "home=cpu"});
  CHECK(plan.device == DeviceKind::kCuda);
  CHECK(site_of(plan, "home").device == DeviceKind::kCpu);
  CHECK_THROWS_WITH(set_devices(plan, {"gpu"}), Catch::Contains("one of cpu, cuda"));
  CHECK_THROWS_WITH(set_devices(plan, {"lab=cpu"}), Catch::Contains("no site has that name"));
}

}  // namespace farstep
