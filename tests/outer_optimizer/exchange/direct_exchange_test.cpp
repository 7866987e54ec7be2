#include "outer_optimizer/exchange/direct_exchange.h"

#include <algorithm>
#include <cmath>

#include "outer_optimizer/codec/make_codec.h"
#include "tests/outer_optimizer/exchange/exchange_ranks.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

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
          sent_bytes += transports[static_cast<std::size_t>(site)]->link(peer).sent_bytes;
      }
      REQUIRE(sent_bytes == 2 * static_cast<uint64_t>(num_sites - 1) * size * 4 /
                                static_cast<uint64_t>(num_sites));
    }
  }
}

TEST_CASE("an aborted exchange names the lost site at every other") {
  const auto transports = connect(3);
  const auto errors = wan::run_ranks(3, [&](int rank) -> std::string {
    auto& transport = *transports[static_cast<std::size_t>(rank)];
    if (rank == 2) {  // never exchanges; the control plane tells the others
      transports[0]->abort("node2", "no heartbeat");
      transports[1]->abort("node2", "no heartbeat");
      return "node2";
    }
    const Fp32Codec codec;
    DirectExchange exchange(transport);
    Values values(100, 1.0F);
    try {
      exchange.average({.generation = 1,
                        .round = 1,
                        .coefficients = {0.5, 0.25, 0.25},
                        .partitions = equal_partitions(100, 3),
                        .codec = &codec},
                       values);
    } catch (const PeerError& error) {
      return error.site();
    }
    return "";
  });
  for (const auto& site : errors) REQUIRE(site == "node2");
}

TEST_CASE("who owns which partition does not change the mean") {
  // Any cut, a small window that makes many steps, one server, two of three.
  const std::size_t size = 300'007;
  const auto deltas = random_deltas(3, size);
  const SyncPoint point{.generation = 1, .round = 1, .coefficients = {0.5, 0.25, 0.25}};
  const auto equal = average(connect(3), deltas, point);
  for (const auto& shares :
       std::vector<std::vector<double>>{{1, 1, 1}, {1, 2, 5}, {1, 0, 0}, {0, 1, 0}, {1, 0, 1}}) {
    auto other = point;
    other.partitions = partitions_of(cut_by_shares({0, static_cast<int64_t>(size)}, shares));
    for (const auto& mean : average(connect(3), deltas, other, Fp32Codec(), 1 << 20)) {
      REQUIRE(mean == equal[0]);
    }
  }
}

TEST_CASE("with a lossy codec all sites still get the same bits near the mean") {
  for (const auto kind : {CodecKind::kFp16, CodecKind::kBf16, CodecKind::kInt8, CodecKind::kInt4}) {
    const auto codec = make_codec({.kind = kind});
    for (const std::size_t size : {0, 1, 639, 641, 70'001}) {
      const auto deltas = random_deltas(4, size);
      const auto means =
          average(connect(4), deltas, {.coefficients = {0.25, 0.25, 0.25, 0.25}}, *codec, 1 << 16);
      double error = 0, norm = 1e-30;
      for (std::size_t k = 0; k < size; ++k) {
        double exact = 0;
        for (const auto& delta : deltas) exact += 0.25 * delta[k];
        error += (means[0][k] - exact) * (means[0][k] - exact);
        norm += exact * exact;
      }
      CHECK(std::sqrt(error / norm) < 0.3);
      for (const auto& mean : means) REQUIRE(mean == means[0]);
    }
  }
}

TEST_CASE("what a site sent and its residual are its delta") {
  const auto codec = make_codec({.kind = CodecKind::kInt4});
  const std::size_t size = 5000;
  const auto deltas = random_deltas(2, size);
  const auto transports = connect(2);
  // The second site's delta counts nothing, so the mean is what the first one sent, encoded again.
  const auto residuals = wan::run_ranks(2, [&](int rank) {
    DirectExchange exchange(*transports[static_cast<std::size_t>(rank)]);
    auto values = deltas[static_cast<std::size_t>(rank)];
    Values residual(size);
    exchange.average(
        {.coefficients = {1, 0}, .partitions = equal_partitions(size, 2), .codec = codec.get()},
        values, {.of_delta = residual});
    return residual;
  });
  for (std::size_t site = 0; site < 2; ++site) {
    Values sent(size);
    for (const auto& part : equal_ranges(size, 2)) {
      const auto begin = static_cast<std::size_t>(part.begin);
      const auto count = static_cast<std::size_t>(part.size());
      std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_bytes(part.size())));
      codec->encode(std::span(deltas[site]).subspan(begin, count), bytes);
      codec->decode(bytes, std::span(sent).subspan(begin, count));
    }
    for (std::size_t k = 0; k < size; ++k) {
      REQUIRE(residuals[site][k] == deltas[site][k] - sent[k]);
    }
  }
}

TEST_CASE("the means and what their encoding left out are the sum of what the sites sent") {
  const auto codec = make_codec({.kind = CodecKind::kInt4});
  constexpr std::size_t kSize = 3001;
  const std::vector<double> coefficients{0.5, 0.25, 0.25};
  const auto partitions = cut_by_shares({0, kSize}, std::vector<double>{1, 0, 3});
  std::vector<Values> left;  // by site, of its partition
  for (const auto& part : partitions) left.emplace_back(static_cast<std::size_t>(part.size()));
  std::vector<double> sum_of_sent(kSize), sum_of_means(kSize);
  const auto transports = connect(3);
  for (unsigned round = 0; round < 5; ++round) {
    auto deltas = random_deltas(3, kSize);
    for (auto& delta : deltas) std::rotate(delta.begin(), delta.begin() + 7 * round, delta.end());
    const auto sent = wan::run_ranks(3, [&](int rank) {
      const auto site = static_cast<std::size_t>(rank);
      DirectExchange exchange(*transports[site]);
      auto values = deltas[site];
      Values residual(kSize);
      exchange.average({.round = round,
                        .coefficients = coefficients,
                        .partitions = partitions_of(partitions),
                        .codec = codec.get()},
                       values, {.of_delta = residual, .of_mean = left[site]});
      for (std::size_t k = 0; k < kSize; ++k) residual[k] = deltas[site][k] - residual[k];
      return std::pair{residual, values};
    });
    for (std::size_t k = 0; k < kSize; ++k) {
      for (std::size_t site = 0; site < 3; ++site) {
        REQUIRE(sent[site].second[k] == sent[0].second[k]);
        sum_of_sent[k] += coefficients[site] * sent[site].first[k];
      }
      sum_of_means[k] += sent[0].second[k];
    }
  }
  for (std::size_t site = 0; site < 3; ++site) {
    for (std::size_t k = 0; k < left[site].size(); ++k) {
      const auto element = static_cast<std::size_t>(partitions[site].begin) + k;
      REQUIRE(std::abs(sum_of_means[element] + left[site][k] - sum_of_sent[element]) < 1e-5);
    }
  }
}

TEST_CASE("an exchange of another number of sites or values is a bug") {
  const auto transports = connect(1);
  const Fp32Codec codec;
  DirectExchange exchange(*transports[0]);
  Values values(3), residual(2);
  const SyncPoint good{.coefficients = {1}, .partitions = equal_partitions(3, 1), .codec = &codec};
  const auto refuse = [&](auto change) {
    auto point = good;
    change(point);
    REQUIRE_THROWS_AS(exchange.average(point, values), InternalError);
  };
  exchange.average(good, values);
  refuse([](SyncPoint& point) { point.coefficients = {0.5, 0.5}; });
  refuse([](SyncPoint& point) { point.partitions = {}; });
  refuse([](SyncPoint& point) { point.partitions = equal_partitions(2, 1); });
  refuse([](SyncPoint& point) { point.partitions = {{.awaited = {{1, 3}}}}; });
  refuse([](SyncPoint& point) { point.codec = nullptr; });
  REQUIRE_THROWS_AS(exchange.average(good, values, {.of_delta = residual}), InternalError);
  REQUIRE_THROWS_AS(exchange.average(good, values, {.of_mean = residual}), InternalError);
}
