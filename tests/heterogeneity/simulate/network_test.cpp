#include "heterogeneity/simulate/network.h"

#include <cmath>
#include <numeric>

#include "heterogeneity/simulate/simulation.h"
#include "outer_optimizer/codec/make_codec.h"
#include "tests/heterogeneity/simulate/scenarios.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {

namespace {

Json equal_sites(std::size_t count) {
  return scenario_json(std::vector<double>(count, 0.1), "uniform");
}

std::vector<std::size_t> first_sites(std::size_t count) {
  std::vector<std::size_t> ids(count);
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  return ids;
}

}  // namespace

TEST_CASE("without links a sync costs nothing but bytes") {
  for (const std::size_t count : {1, 2, 3, 50}) {
    const auto json = equal_sites(count);
    constexpr int64_t kValues = 1200;
    const auto cost = Network(scenario_of(json)).sync_cost(first_sites(count), kValues);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(cost.control_seconds[i] == 0);
      CHECK(cost.exchange_seconds[i] == 0);
      CHECK(cost.sent_bytes[i] == Approx(2.0 * (count - 1) / count * 4800));
      CHECK(cost.received_bytes[i] == cost.sent_bytes[i]);
    }
  }
}

TEST_CASE("what all sites send is what all sites receive whatever the partitions") {
  for (const std::size_t count : {2, 3, 7, 1000}) {
    const auto json = equal_sites(count);
    constexpr int64_t kValues = 1009;
    const auto cost = Network(scenario_of(json)).sync_cost(first_sites(count), kValues);
    const auto sum = [](const std::vector<int64_t>& bytes) {
      return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    };
    // Each of 4 * 1009 bytes travels from every site to its owner, and its mean back to every site.
    CHECK(sum(cost.sent_bytes) == 2 * static_cast<int64_t>(count - 1) * 4 * 1009);
    CHECK(sum(cost.received_bytes) == sum(cost.sent_bytes));
  }
}

TEST_CASE("equal links give the closed form of the direct exchange") {
  constexpr double kRtt = 0.08, kBandwidth = 1e8;
  for (const std::size_t count : {2, 3, 10}) {
    auto json = equal_sites(count);
    constexpr int64_t kValues = 360'000;
    json["link"] = {{"rtt_seconds", kRtt}, {"bandwidth_bits_per_second", kBandwidth}};
    const auto cost = Network(scenario_of(json)).sync_cost(first_sites(count), kValues);
    const double bytes = 4 * 360'000;
    const double phase = kRtt / 2 + 8 * bytes * (count - 1) / count / kBandwidth;
    CHECK(cost.control_seconds[0] == 0);
    for (std::size_t i = 1; i < count; ++i) CHECK(cost.control_seconds[i] == kRtt / 2);
    // With a third site, site 0 waits for what a peer sent that got Go later than itself.
    CHECK(cost.exchange_seconds[0] == Approx(2 * phase + (count > 2 ? kRtt / 2 : 0)));
    for (std::size_t i = 1; i < count; ++i) CHECK(cost.exchange_seconds[i] == Approx(2 * phase));
  }
}

TEST_CASE("a way is described by the nearest that knows it") {
  auto json = equal_sites(4);
  json["link"] = {{"rtt_seconds", 0.4}, {"bandwidth_bits_per_second", 4e6}};
  for (std::size_t i = 0; i < 4; ++i) json["sites"][i]["region"] = i < 2 ? "y" : "x";
  json["regions"] = Json::array(
      {{{"from", "x"}, {"to", "y"}, {"rtt_seconds", 0.2}, {"bandwidth_bits_per_second", 2e6}},
       {{"from", "x"}, {"to", "x"}, {"rtt_seconds", 0.01}}});
  json["sites"][0]["profile"]["links"] =
      Json::array({{{"peer", "s2"}, {"rtt_seconds", 0.1}},
                   {{"peer", "s3"}, {"rtt_seconds", 0.3}, {"bandwidth_bits_per_second", 3e6}}});
  json["sites"][3]["profile"]["links"] = Json::array({{{"peer", "s0"}, {"rtt_seconds", 0.31}}});
  const Network network(scenario_of(json));
  CHECK(network.rtt_seconds(0, 1) == 0.4);
  CHECK(network.bandwidth_bits_per_second(0, 1) == 4e6);
  CHECK(network.rtt_seconds(0, 2) == 0.1);
  CHECK(network.bandwidth_bits_per_second(0, 2) == 2e6);
  CHECK(network.rtt_seconds(2, 0) == 0.1);
  CHECK(network.rtt_seconds(1, 2) == 0.2);
  CHECK(network.rtt_seconds(0, 3) == 0.3);
  CHECK(network.rtt_seconds(3, 0) == 0.31);
  CHECK(network.bandwidth_bits_per_second(3, 0) == 3e6);
  CHECK(network.rtt_seconds(2, 3) == 0.01);
  CHECK(network.bandwidth_bits_per_second(2, 3) == 4e6);
}

TEST_CASE("one slow way holds up its two ends in the first phase and all in the second") {
  auto json = equal_sites(3);
  json["link"] = {{"bandwidth_bits_per_second", 1e9}};
  json["sites"][0]["profile"]["links"] =
      Json::array({{{"peer", "s1"}, {"bandwidth_bits_per_second", 1e6}}});
  const auto cost = Network(scenario_of(json)).sync_cost(first_sites(3), 3'000'000);
  // A partition is 32e6 bits.
  CHECK(cost.exchange_seconds[0] == Approx(64));
  CHECK(cost.exchange_seconds[1] == Approx(64));
  // The slow way leaves its sender's uplink to the other one. Both parts share the downlink.
  CHECK(cost.exchange_seconds[2] == Approx(32.064));
}

TEST_CASE("a parameter server's line carries everything") {
  auto json = equal_sites(4);
  json["link"] = {{"bandwidth_bits_per_second", 1e9}};
  json["sync"] = {{"exchange", "parameter_server"}, {"servers", {"s2"}}};
  // The model has 32e6 bits: three of them come to the server, and three leave it.
  auto cost = Network(scenario_of(json)).sync_cost(first_sites(4), 1'000'000);
  for (const double seconds : cost.exchange_seconds) CHECK(seconds == Approx(2 * 3 * 0.032));
  CHECK(cost.sent_bytes == std::vector<int64_t>{4'000'000, 4'000'000, 12'000'000, 4'000'000});
  for (const double seconds : cost.back_seconds) CHECK(seconds <= 0.192 + 1e-9);
  // With two servers each has half of it.
  json["sync"]["servers"] = {"s2", "s0"};
  cost = Network(scenario_of(json)).sync_cost(first_sites(4), 1'000'000);
  for (const double seconds : cost.exchange_seconds) CHECK(seconds <= 2 * 2 * 0.032 + 1e-9);
}

TEST_CASE("a server that does not train sends means alone") {
  auto json = equal_sites(4);
  json["strategy"] = {{"kind", "parameter_server"}};
  json["sites"][2]["trains"] = false;
  json["sites"][3]["trains"] = false;
  auto cost = Network(scenario_of(json)).sync_cost(first_sites(4), 1'000'000);
  // Each server has 2e6 bytes of the model: gradients of two come, means to three go.
  CHECK(cost.sent_bytes == std::vector<int64_t>{4'000'000, 4'000'000, 6'000'000, 6'000'000});
  CHECK(cost.received_bytes == std::vector<int64_t>{4'000'000, 4'000'000, 6'000'000, 6'000'000});
}

TEST_CASE("a ring takes the time of its bytes and of its hops") {
  for (const int count : {1, 2, 4, 8}) {
    auto json = equal_sites(count);
    json["link"] = {{"bandwidth_bits_per_second", 1e9}, {"rtt_seconds", 0.02}};
    json["sync"] = {{"exchange", "ring"}};
    const auto cost = Network(scenario_of(json)).sync_cost(first_sites(count), 8'000'000);
    const double hops = 2.0 * (count - 1);
    const double seconds = hops * (0.256 / count + 0.01);
    const double control = count == 1 ? 0 : 0.01;  // the others hear Go later than the first
    CHECK(cost.exchange_seconds[0] == Approx(seconds == 0 ? 0 : seconds + control));
    CHECK(cost.exchange_seconds[static_cast<std::size_t>(count) - 1] == Approx(seconds));
  }
}

TEST_CASE("a codec sends its own bytes") {
  for (const std::string codec : {"int8", "int4"}) {
    auto json = equal_sites(2);
    json["sync"] = {{"codec", {{"kind", codec}}}};
    const auto scenario = scenario_of(json);
    const auto cost = Network(scenario).sync_cost(first_sites(2), 100'000);
    const auto part_bytes = outer_optimizer::make_codec(scenario.sync.codec)->encoded_bytes(50'000);
    CHECK(cost.sent_bytes == std::vector<int64_t>(2, 2 * part_bytes));
  }
}

TEST_CASE("the last rounds send the bytes of the fine codec") {
  auto json = equal_sites(2);
  json["rounds"] = 5;
  json["parameters"] = 100'000;
  json["sync"] = {{"codec", {{"kind", "int2"}}}, {"fine_rounds", 2}, {"fine_codec", "int8"}};
  Simulation simulation(scenario_of(json), "scenario.json");
  for (int64_t round = 1; round <= 5; ++round) {
    const auto kind =
        round <= 3 ? outer_optimizer::CodecKind::kInt2 : outer_optimizer::CodecKind::kInt8;
    const auto part_bytes = outer_optimizer::make_codec({.kind = kind})->encoded_bytes(50'000);
    CHECK(simulation.next_round().sites[0].syncs[0].sent_bytes == 2 * part_bytes);
  }
}

}  // namespace farstep::heterogeneity
