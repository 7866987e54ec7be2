#include "heterogeneity/simulate/simulation.h"

#include <algorithm>
#include <numeric>

#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

// Step times between 0.1 and 0.4 s, in no order.
std::vector<double> unequal(std::size_t count) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < count; ++i) {
    seconds.push_back(0.1 + 0.3 * static_cast<double>(i * 7 % count) / static_cast<double>(count));
  }
  return seconds;
}

double waited(const SiteRound& site) {
  return site.time().seconds(SpanCause::kWait);
}

double total(const SiteRound& site) {
  return site.time().total_seconds();
}

}  // namespace

TEST_CASE("uniform sites wait for the slowest by construction") {
  for (const std::size_t count : {1, 2, 3, 1000}) {
    const auto seconds = unequal(count);
    const double slowest = *std::max_element(seconds.begin(), seconds.end());
    auto json = scenario_json(seconds, "uniform");
    json["rounds"] = 3;
    const auto result = simulate(scenario_of(json));
    double idle = 0;
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(result.sites[i].time.compute_seconds == Approx(300 * seconds[i]));
      CHECK(result.idle_seconds(result.sites[i]) ==
            Approx(100 * (slowest - seconds[i])).margin(1e-9));
      idle += 100 * (slowest - seconds[i]);
    }
    CHECK(result.total_idle_seconds() == Approx(idle).margin(1e-9));
  }
}

TEST_CASE("sites that step together wait for the slowest step by step") {
  for (const std::string kind : {"ring_all_reduce", "parameter_server", "data_parallel_master"}) {
    const std::vector<double> seconds{0.239, 0.25, 0.104, 0.201};
    auto json = scenario_json(seconds, "uniform");
    json["strategy"] = {{"kind", kind}};
    const auto uniform = simulate(scenario_of(json));
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const auto& site = uniform.sites[i];
      CHECK(site.last_steps == 100);
      CHECK(uniform.idle_seconds(site) == Approx(100 * (0.25 - seconds[i])).margin(1e-9));
    }
    // With 64 sequences a site to divide, hardly any time is left to wait.
    json["plan"]["policy"] = "hybrid";
    json["plan"]["base_batch"] = 64;
    const auto hybrid = simulate(scenario_of(json));
    double compute = 0;
    int64_t batches = 0;
    for (const auto& site : hybrid.sites) {
      CHECK(site.last_steps == 100);
      compute += site.time.compute_seconds / static_cast<double>(hybrid.rounds);
      batches += site.last_batch;
    }
    CHECK(batches == 256);
    CHECK(hybrid.total_idle_seconds() < 0.01 * compute);
  }
}

TEST_CASE("a site that serves alone neither computes nor waits") {
  for (const std::string policy : {"uniform", "hybrid"}) {
    auto json = scenario_json({0.3, 0.1, 0.2}, policy);
    json["strategy"] = {{"kind", "parameter_server"}};
    json["plan"]["base_batch"] = 16;
    json["sites"][0]["trains"] = false;
    json["sites"][1]["hide_profile"] = json["sites"][2]["hide_profile"] = policy == "hybrid";
    const auto result = simulate(scenario_of(json));
    const auto& server = result.sites[0];
    CHECK(server.last_batch == 0);
    CHECK(server.time.compute_seconds == 0);
    CHECK(server.time.idle_seconds() == 0);
    CHECK(server.time.serve_seconds() ==
          Approx(result.sites[2].time.total_seconds()).epsilon(1e-9));
    CHECK(result.sites[1].last_batch + result.sites[2].last_batch == 32);
    if (policy == "uniform") CHECK(result.idle_seconds(result.sites[1]) == Approx(100 * 4 * 0.1));
  }
}

TEST_CASE(
    "a scenario without a site that trains, or with one that has nothing to serve, is refused") {
  auto json = scenario_json({0.3, 0.1}, "uniform");
  json["strategy"] = {{"kind", "parameter_server"}};
  json["sites"][0]["trains"] = json["sites"][1]["trains"] = false;
  CHECK_THROWS_WITH(scenario_of(json), Catch::Contains("no site that trains"));
  json["sites"][1]["trains"] = true;
  json["strategy"] = {{"kind", "ring_all_reduce"}};
  CHECK_THROWS_AS(scenario_of(json), ConfigError);
}

TEST_CASE("backward hides the gradient's exchange but for the last bucket") {
  // Two equal sites send 32e6 bits each over 1e9 bit/s: 0.032 s of each 0.3 s step.
  auto json = scenario_json({0.3, 0.3}, "uniform");
  json["parameters"] = 1'000'000;
  json["link"] = {{"bandwidth_bits_per_second", 1e9}};
  const auto exposed = [&](const std::string& kind, int64_t bucket_bytes, double step_seconds) {
    json["strategy"] = {{"kind", kind}, {"bucket_bytes", bucket_bytes}};
    json["sites"] = {site_json("a", step_seconds), site_json("b", step_seconds)};
    const auto result = simulate(scenario_of(json));
    return result.sites[0].time.seconds(SpanCause::kWan) /
           (100 * static_cast<double>(result.rounds));
  };
  CHECK(exposed("ring_all_reduce", 400'000, 0.3) == Approx(0.0032));
  CHECK(exposed("ring_all_reduce", 4'000'000, 0.3) == Approx(0.032));
  // A backward of 0.02 s hides nine tenths of itself.
  CHECK(exposed("ring_all_reduce", 400'000, 0.03) == Approx(0.032 - 0.9 * 0.02));
  // One server has all of it on its line, there and back.
  CHECK(exposed("parameter_server", 400'000, 0.3) == Approx(0.0064));
  // The master's values come after its update.
  CHECK(exposed("data_parallel_master", 400'000, 0.3) == Approx(0.0032 + 0.032));
}

TEST_CASE("a site alone neither waits nor sends and equal sites do not wait") {
  for (const std::size_t count : {1, 2, 5}) {
    for (const std::string policy : {"uniform", "hybrid"}) {
      auto json = scenario_json(std::vector<double>(count, 0.2), policy);
      json["parameters"] = 1000;
      if (count == 1) json["link"] = {{"rtt_seconds", 0.1}, {"bandwidth_bits_per_second", 1e6}};
      const auto result = simulate(scenario_of(json));
      for (const auto& site : result.sites) {
        CHECK(site.time.seconds(SpanCause::kWait) == Approx(0).margin(1e-9));
        CHECK(site.time.seconds(SpanCause::kWan) == Approx(0).margin(1e-9));
      }
    }
  }
}

TEST_CASE("every site's round goes from commit to commit without a gap") {
  auto json = scenario_json({0.1, 0.2, 0.35}, "hybrid");
  json["parameters"] = 100'000;
  json["outer_seconds"] = 0.5;
  json["link"] = {{"rtt_seconds", 0.2}, {"bandwidth_bits_per_second", 1e7}};
  for (std::size_t i = 0; i < 3; ++i) {
    json["sites"][i]["jitter"] = 0.1;
    json["sites"][i]["evaluate_seconds"] = 1.0 * static_cast<double>(i);
    json["sites"][i]["checkpoint_seconds"] = 0.5;
  }
  Simulation simulation(scenario_of(json), "test.json");
  std::vector<double> commits(3, 0);
  for (int round = 1; round <= 10; ++round) {
    const auto& simulated = simulation.next_round();
    CHECK(simulated.round == round);
    double weights = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& site = simulated.sites[i];
      CHECK(site.start_seconds == Approx(commits[i]));
      commits[i] = site.start_seconds + total(site);
      weights += site.syncs.back().averaging_weight;
      // Nobody waits or sends for a negative time.
      REQUIRE(site.syncs.size() == 1);
      CHECK(site.syncs[0].all.wait >= 0);
      CHECK(site.syncs[0].all.vote >= 0);
      CHECK(site.syncs[0].all.exchange > 0);
    }
    CHECK(weights == Approx(1));
    // The commit travels from the first site, where the coordinator is.
    CHECK(commits[1] == Approx(commits[0] + 0.1));
    CHECK(commits[2] == Approx(commits[0] + 0.1));
  }
  CHECK_THROWS_AS(simulation.next_round(), InternalError);
}

TEST_CASE("the arrival and Go pay half a round trip each") {
  auto json = scenario_json({0.2, 0.2}, "uniform");
  json["link"] = {{"rtt_seconds", 0.3}};
  Simulation simulation(scenario_of(json), "test.json");
  const auto& sites = simulation.next_round().sites;
  CHECK(waited(sites[0]) == Approx(0.15));  // the coordinator is here
  CHECK(waited(sites[1]) == Approx(0.3));
}

TEST_CASE("jitter stays in its bounds and differs by seed only") {
  auto json = scenario_json({0.2, 0.3}, "uniform");
  json["sites"][0]["jitter"] = 0.1;
  const auto steps_with_seed = [&json](int seed) {
    json["seed"] = seed;
    Simulation simulation(scenario_of(json), "test.json");
    return simulation.next_round().sites[0].step_seconds;
  };
  const auto steps = steps_with_seed(1);
  CHECK(steps == steps_with_seed(1));
  CHECK(steps != steps_with_seed(2));
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  CHECK(*least >= 0.18);
  CHECK(*most <= 0.22);
  CHECK(*most - *least > 0.03);
  CHECK(std::accumulate(steps.begin(), steps.end(), 0.0) == Approx(20).epsilon(0.02));
}

TEST_CASE("a change of speed shows in its round") {
  auto json = scenario_json({0.2, 0.2}, "uniform");
  json["sites"][0]["speed"] =
      Json::array({{{"round", 2}, {"times", 2}}, {{"round", 3}, {"times", 0.5}}});
  Simulation simulation(scenario_of(json), "test.json");
  CHECK(simulation.next_round().sites[0].step_seconds[0] == Approx(0.2));
  CHECK(simulation.next_round().sites[0].step_seconds[0] == Approx(0.4));
  CHECK(simulation.next_round().sites[0].step_seconds[0] == Approx(0.1));
  CHECK(simulation.next_round().sites[0].step_seconds[0] == Approx(0.1));
}

TEST_CASE("a late joiner has no part before its round and delays nobody") {
  auto json = scenario_json({0.2, 0.3, 0.8}, "hybrid");
  json["sites"][2]["joins_at_round"] = 4;
  json["sites"][2]["evaluate_seconds"] = 2;
  json["link"] = {{"rtt_seconds", 0.2}};
  Simulation simulation(scenario_of(json), "test.json");
  double commit = 0;
  for (int round = 1; round <= 10; ++round) {
    const auto& simulated = simulation.next_round();
    REQUIRE(simulated.sites.size() == (round < 4 ? 2 : 3));
    CHECK(simulated.generation == (round < 4 ? 1 : 2));
    if (round < 4) CHECK(total(simulated.sites[0]) == Approx(30.2).epsilon(0.02));
    if (round == 4) CHECK(simulated.sites[2].start_seconds == Approx(commit + 0.1));
    if (round >= 4) {
      CHECK(simulated.sites[2].steps() == Approx(100).margin(5));
      CHECK(total(simulated.sites[2]) ==
            Approx(0.8 * simulated.sites[2].steps() + 2.3).epsilon(0.01));
    }
    if (round > 4) {
      for (const auto& site : simulated.sites) CHECK(waited(site) < 0.6);
    }
    commit = simulated.sites[0].start_seconds + total(simulated.sites[0]);
  }
}

TEST_CASE("a plan for a new member keeps what the rounds before showed") {
  auto json = scenario_json({0.2, 0.3, 0.25}, "hybrid");
  json["sites"][0]["speed"] = Json::array({{{"round", 1}, {"times", 2}}});
  json["sites"][2]["joins_at_round"] = 5;
  Simulation simulation(scenario_of(json), "test.json");
  for (int round = 1; round <= 10; ++round) {
    const auto& simulated = simulation.next_round();
    if (round < 3) continue;
    for (const auto& site : simulated.sites) CHECK(waited(site) < 0.02 * total(site));
  }
}

TEST_CASE("a round by deadline ends inside the slack where the plan knows the steps") {
  for (const std::size_t count : {1, 2, 3, 20}) {
    auto json = scenario_json(unequal(count), "hybrid");
    json["plan"]["round_end"] = "deadline";
    json["plan"]["slack_fraction"] = 0.02;
    Simulation simulation(scenario_of(json), "test.json");
    for (int round = 1; round <= 10; ++round) {
      const auto& simulated = simulation.next_round();
      REQUIRE(simulated.planned_seconds);
      for (const auto& site : simulated.sites) {
        CHECK(site.time().compute_seconds <= 1.02 * *simulated.planned_seconds + 1e-9);
        CHECK(waited(site) <= 0.03 * *simulated.planned_seconds + site.step_seconds[0]);
      }
    }
  }
}

TEST_CASE("a site that gets faster within a round by deadline takes more steps at once") {
  auto json = scenario_json({0.2, 0.2}, "hybrid");
  json["plan"]["round_end"] = "deadline";
  json["sites"][1]["speed"] = Json::array({{{"round", 2}, {"times", 0.9}}});
  Simulation simulation(scenario_of(json), "test.json");
  const auto steps = simulation.next_round().sites[1].steps();
  const auto& second = simulation.next_round();
  CHECK(second.sites[1].steps() > steps);
  CHECK(waited(second.sites[1]) < 0.02 * total(second.sites[1]));
}

}  // namespace farstep::heterogeneity
