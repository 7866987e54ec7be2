// Simulated runs whose master sends all sites their batches.
#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {
namespace {

// Steps of 0.3 s at equal sites; the first is the master. Its values, 32e6 bits, take 0.032 s to
// one site. One site's batch of four takes `batch_seconds`.
Json scattered_json(int num_sites, double batch_seconds) {
  auto json =
      scenario_json(std::vector<double>(static_cast<std::size_t>(num_sites), 0.3), "uniform");
  json["parameters"] = 1'000'000;
  json["link"] = {{"bandwidth_bits_per_second", 1e9}};
  json["example_bytes"] = static_cast<int64_t>(batch_seconds * 1e9 / 8 / 4);
  json["strategy"] = {
      {"kind", "data_parallel_master"}, {"bucket_bytes", 400'000}, {"scatter", true}};
  return json;
}

double a_round(const SimulationResult& result, std::size_t site, SpanCause cause) {
  return result.sites[site].time.seconds(cause) / static_cast<double>(result.rounds);
}

TEST_CASE("a step hides the batches of the next one, but for the first of a round") {
  for (const int num_sites : {2, 3}) {
    const int others = num_sites - 1;
    const auto result = simulate(scenario_of(scattered_json(num_sites, 0.01)));
    auto json = scattered_json(num_sites, 0.01);
    json["strategy"]["scatter"] = false;
    const auto own = simulate(scenario_of(json));
    for (std::size_t site = 0; site < static_cast<std::size_t>(num_sites); ++site) {
      // Equal batches leave together.
      const double more =
          a_round(result, site, SpanCause::kWait) - a_round(own, site, SpanCause::kWait);
      CHECK(more == Approx(0.01 * others).epsilon(1e-6));
      CHECK(a_round(result, site, SpanCause::kWan) ==
            Approx(a_round(own, site, SpanCause::kWan)).epsilon(1e-9));
    }
  }
}

TEST_CASE("values queue behind batches that take longer than a step") {
  const auto result = simulate(scenario_of(scattered_json(2, 0.5)));
  // The line is full: 0.5 s of batches and 0.032 s of values a step, of which 0.3 s are computed.
  for (const std::size_t site : {0, 1}) {
    CHECK(a_round(result, site, SpanCause::kWait) == Approx(0.5));
    CHECK(a_round(result, site, SpanCause::kWan) == Approx(99 * 0.232 + 0.0352));
  }
}

TEST_CASE("the batches count among the bytes of the master and of the others") {
  auto json = scattered_json(3, 0.01);
  json["sync"] = {{"servers", {"s1"}}};
  Simulation simulation(scenario_of(json), "test.json");
  json["strategy"]["scatter"] = false;
  Simulation own(scenario_of(json), "test.json");
  const auto& sites = simulation.next_round().sites;
  const auto& before = own.next_round().sites;
  constexpr int64_t kBatch = 1'250'000;
  for (std::size_t site = 0; site < 3; ++site) {
    const auto& one = sites[site].syncs.front();
    const auto& other = before[site].syncs.front();
    CHECK(one.sent_bytes - other.sent_bytes == (site == 1 ? 100 * 2 * kBatch : 0));
    CHECK(one.received_bytes - other.received_bytes == (site == 1 ? 0 : 100 * kBatch));
  }
}

TEST_CASE("a measured round goes on with the batches of its new plan") {
  auto json = scattered_json(2, 0.01);
  json["plan"] = {{"policy", "hybrid"}, {"base_batch", 8}};
  json["sites"] = {site_json("s0", 0.3), site_json("s1", 0.1)};
  for (auto& site : json["sites"]) site["hide_profile"] = true;
  Simulation simulation(scenario_of(json), "test.json");
  const auto& sites = simulation.next_round().sites;
  const auto& measured = sites[1].measuring_plan;
  REQUIRE(measured);
  const int64_t steps_before = sites[1].plan.steps_before;
  CHECK(sites[1].plan.batch > measured->batch);
  const auto& worker = sites[1].syncs.front();
  CHECK(worker.received_bytes ==
        100 * 4'000'000 + 312'500 * (steps_before * measured->batch +
                                     (100 - steps_before) * sites[1].plan.batch));
}

TEST_CASE("an example is a sequence where nothing else is said") {
  auto json = scattered_json(2, 0.01);
  json.erase("example_bytes");
  json["sequence_length"] = 1024;
  CHECK(scenario_of(json).example_bytes == 8 * 1025);
}

TEST_CASE("only a run with a master scatters") {
  for (const std::string kind : {"ring_all_reduce", "parameter_server", "low_communication"}) {
    auto json = scattered_json(2, 0.01);
    json["strategy"]["kind"] = kind;
    CHECK_THROWS_WITH(scenario_of(json), Catch::Contains("test.json: strategy.scatter: is true") &&
                                             Catch::Contains(kind));
  }
}

}  // namespace
}  // namespace farstep::heterogeneity
