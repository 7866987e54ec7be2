#include "outer_optimizer/exchange/direct_exchange.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/error.h"
#include "wan/transport/memory_transport.h"

using namespace farstep;

namespace {

using Values = std::vector<float>;

std::vector<Values> random_deltas(int num_sites, std::size_t size) {
  std::mt19937 generator(static_cast<unsigned>(100 * num_sites) + static_cast<unsigned>(size));
  std::normal_distribution<float> normal;
  std::vector<Values> deltas(static_cast<std::size_t>(num_sites), Values(size));
  for (auto& delta : deltas) {
    for (auto& value : delta) value = normal(generator);
  }
  return deltas;
}

std::vector<std::unique_ptr<Transport>> connect(int num_sites) {
  std::vector<std::string> names;
  for (int site = 0; site < num_sites; ++site) names.push_back("node" + std::to_string(site));
  return connect_in_memory(names, 10);
}

// The mean that each site gets for its delta.
std::vector<Values> average(const std::vector<std::unique_ptr<Transport>>& transports,
                            const std::vector<Values>& deltas, const SyncPoint& point) {
  return run_ranks(static_cast<int>(deltas.size()), [&](int rank) {
    const Fp32Codec codec;
    DirectExchange exchange(*transports[static_cast<std::size_t>(rank)], codec);
    Values values = deltas[static_cast<std::size_t>(rank)];
    exchange.average(point, values);
    return values;
  });
}

}  // namespace

TEST_CASE("every site gets the same bits and they are the weighted mean") {
  for (int num_sites = 1; num_sites <= 6; ++num_sites) {
    for (const std::size_t size : {0, 1, 2, 3, 5, 64, 1001}) {
      const auto deltas = random_deltas(num_sites, size);
      SyncPoint point{.generation = 1, .round = 3};
      double sum = 0;
      for (int site = 0; site < num_sites; ++site) sum += site + 1;
      for (int site = 0; site < num_sites; ++site) point.coefficients.push_back((site + 1) / sum);
      const auto means = average(connect(num_sites), deltas, point);
      for (const auto& mean : means) REQUIRE(mean == means[0]);
      for (std::size_t k = 0; k < size; ++k) {
        double expected = 0;
        for (std::size_t site = 0; site < deltas.size(); ++site) {
          expected += point.coefficients[site] * deltas[site][k];
        }
        REQUIRE(std::abs(means[0][k] - expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("the sum is taken in fp32 in order of site id whoever owns the partition") {
  // 1 is lost beside 1e8 unless the large values cancel first, which only this order does.
  const std::vector<Values> deltas{Values(6, 1e8F), Values(6, -1e8F), Values(6, 1.0F)};
  const auto means =
      average(connect(3), deltas, {.generation = 1, .round = 1, .coefficients = {1, 1, 1}});
  for (const auto& mean : means) REQUIRE(mean == Values(6, 1.0F));
}

TEST_CASE("a site sends the formula's bytes and no more") {
  for (const int num_sites : {1, 2, 3, 4}) {
    const std::size_t size = 1200;
    const auto transports = connect(num_sites);
    const std::vector<double> equal(static_cast<std::size_t>(num_sites), 1.0 / num_sites);
    average(transports, random_deltas(num_sites, size),
            {.generation = 1, .round = 1, .coefficients = equal});
    for (int site = 0; site < num_sites; ++site) {
      uint64_t sent_bytes = 0;
      for (int peer = 0; peer < num_sites; ++peer) {
        if (peer != site)
          sent_bytes += transports[static_cast<std::size_t>(site)]->counters(peer).sent_bytes;
      }
      REQUIRE(sent_bytes == 2 * static_cast<uint64_t>(num_sites - 1) * size * 4 /
                                static_cast<uint64_t>(num_sites));
    }
  }
}

TEST_CASE("an aborted exchange names the lost site at every other") {
  const auto transports = connect(3);
  const auto errors = run_ranks(3, [&](int rank) -> std::string {
    auto& transport = *transports[static_cast<std::size_t>(rank)];
    if (rank == 2) {  // never exchanges; the control plane tells the others
      transports[0]->abort("node2", "no heartbeat");
      transports[1]->abort("node2", "no heartbeat");
      return "node2";
    }
    const Fp32Codec codec;
    DirectExchange exchange(transport, codec);
    Values values(100, 1.0F);
    try {
      exchange.average({.generation = 1, .round = 1, .coefficients = {0.5, 0.25, 0.25}}, values);
    } catch (const PeerError& error) {
      return error.site();
    }
    return "";
  });
  for (const auto& site : errors) REQUIRE(site == "node2");
}

TEST_CASE("coefficients for another number of sites are a bug") {
  const auto transports = connect(1);
  const Fp32Codec codec;
  DirectExchange exchange(*transports[0], codec);
  Values values(3);
  REQUIRE_THROWS_AS(exchange.average({.coefficients = {0.5, 0.5}}, values), InternalError);
}
