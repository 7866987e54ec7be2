// Fragments, delays and codecs in simulated rounds.
#include <cmath>

#include "outer_optimizer/codec/make_codec.h"
#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {

namespace {

constexpr double kStepSeconds = 0.2, kRtt = 0.1, kBandwidth = 1e7;
constexpr int64_t kSteps = 20, kParameters = 1'000'000;

// Two equal sites whose sync in one piece takes seconds.
Json slow_link_json(int64_t fragments, int64_t delay_steps, const std::string& codec = "fp32") {
  auto json = scenario_json({kStepSeconds, kStepSeconds}, "uniform");
  json["rounds"] = 2;
  json["plan"]["base_steps"] = kSteps;
  json["parameters"] = kParameters;
  json["link"] = {{"rtt_seconds", kRtt}, {"bandwidth_bits_per_second", kBandwidth}};
  json["sync"] = {
      {"fragments", fragments}, {"delay_steps", delay_steps}, {"codec", {{"kind", codec}}}};
  return json;
}

double seconds(const SyncSeconds& sync) {
  return sync.wait + sync.exchange + sync.outer + sync.vote;
}

// Exposed seconds of a round on the WAN, of the site where the coordinator is.
double exposed_wan(const Json& json) {
  const auto result = simulate(scenario_of(json));
  return result.sites[0].time.seconds(SpanCause::kWan) / static_cast<double>(result.rounds);
}

// Of a fragment, from Go at the coordinator's site to the commit there: bytes and two hops, of
// which the first begins a hop late, and the other site's vote.
double sync_seconds(int64_t fragments,
                    outer_optimizer::CodecKind codec = outer_optimizer::CodecKind::kFp32) {
  const auto bytes =
      outer_optimizer::make_codec({.kind = codec})->encoded_bytes(kParameters / fragments / 2);
  return 2 * (8 * static_cast<double>(bytes) / kBandwidth + kRtt / 2) + kRtt;
}

}  // namespace

TEST_CASE("what is exposed of a sync is what training leaves of it part by part") {
  const SyncSeconds all{.wait = 1, .exchange = 2, .outer = 3, .vote = 4};
  for (const double hidden : {0.0, 0.5, 1.5, 4.0, 9.0, 20.0}) {
    const auto left = exposed_part(all, hidden);
    CHECK(seconds(left) == Approx(std::max(0.0, 10 - hidden)));
    CHECK(left.wait == Approx(std::max(0.0, 1 - hidden)));
    CHECK(left.vote == Approx(std::min(4.0, std::max(0.0, 10 - hidden))));
  }
}

TEST_CASE("fragments without a delay cost a round trip more each") {
  for (const int64_t fragments : {1, 2, 4, 10}) {
    CHECK(exposed_wan(slow_link_json(fragments, 0)) ==
          Approx(static_cast<double>(fragments) * sync_seconds(fragments)));
  }
}

TEST_CASE("a delay hides as much of every sync as its steps last") {
  for (const int64_t fragments : {1, 4}) {
    for (const int64_t delay_steps : {1, 3, 5}) {
      const auto json = slow_link_json(fragments, delay_steps);
      CAPTURE(fragments, delay_steps);
      Simulation simulation(scenario_of(json), "test.json");
      const outer_optimizer::FragmentSchedule schedule(kSteps, fragments, delay_steps, kSteps);
      for (const auto& site : simulation.next_round().sites) {
        for (const auto& sync : site.syncs) {
          const auto steps = schedule.apply_step(sync.fragment) - schedule.send_step(sync.fragment);
          const double hidden = static_cast<double>(steps) * kStepSeconds;
          CHECK(seconds(sync.exposed) ==
                Approx(std::max(0.0, seconds(sync.all) - hidden)).margin(1e-9));
        }
      }
      CHECK(exposed_wan(json) < exposed_wan(slow_link_json(fragments, delay_steps - 1)));
    }
  }
  CHECK(exposed_wan(slow_link_json(4, 5)) < 0.2 * exposed_wan(slow_link_json(1, 0)));
}

TEST_CASE("a smaller codec exposes less") {
  CHECK(exposed_wan(slow_link_json(1, 0, "int8")) ==
        Approx(sync_seconds(1, outer_optimizer::CodecKind::kInt8)));
  CHECK(exposed_wan(slow_link_json(4, 3, "int4")) == Approx(0).margin(1e-9));
}

TEST_CASE("fragments are sent and applied at the steps of the schedule at every site") {
  auto json = slow_link_json(4, 3);
  json["sites"].push_back(site_json("slow", 2 * kStepSeconds));
  json["plan"]["policy"] = "hybrid";
  Simulation simulation(scenario_of(json), "test.json");
  for (int round = 1; round <= 2; ++round) {
    for (const auto& site : simulation.next_round().sites) {
      const outer_optimizer::FragmentSchedule schedule(site.plan.local_steps, 4, 3, kSteps);
      REQUIRE(site.syncs.size() == 4);
      for (const auto& sync : site.syncs) {
        CHECK(sync.applied_after == schedule.apply_step(sync.fragment));
      }
    }
  }
}

TEST_CASE("all of the model's bytes are sent whatever the fragments") {
  for (const int64_t fragments : {1, 3, 4, 20}) {
    Simulation simulation(scenario_of(slow_link_json(fragments, 0)), "test.json");
    int64_t sent_bytes = 0;
    for (const auto& site : simulation.next_round().sites) {
      for (const auto& sync : site.syncs) sent_bytes += sync.sent_bytes;
    }
    CHECK(sent_bytes == 2 * 4 * kParameters);
  }
}

TEST_CASE("a site has its round behind it when the last fragment is applied") {
  for (const std::string round_end : {"steps", "deadline"}) {
    for (const int64_t fragments : {1, 4}) {
      for (const int64_t delay_steps : {0, 3}) {
        auto json = slow_link_json(fragments, delay_steps);
        json["plan"]["policy"] = "hybrid";
        json["plan"]["round_end"] = round_end;
        json["sites"][1]["jitter"] = 0.2;
        json["sites"][1]["hide_profile"] = true;
        json["sites"][0]["hide_profile"] = true;
        json["rounds"] = 5;
        Simulation simulation(scenario_of(json), "test.json");
        std::vector<double> ends(2, 0);
        for (int round = 0; round < 5; ++round) {
          for (const auto& site : simulation.next_round().sites) {
            CHECK(site.start_seconds == Approx(ends[site.site]));
            ends[site.site] = site.start_seconds + site.time().total_seconds();
            CHECK(site.syncs.back().applied_after == site.steps());
            double weight = 0;
            for (const auto& sync : site.syncs) weight += sync.averaging_weight;
            CHECK(weight == Approx(0.5 * static_cast<double>(fragments)));
          }
        }
      }
    }
  }
}

}  // namespace farstep::heterogeneity
