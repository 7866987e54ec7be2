#include "outer_optimizer/schedule/partition.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

TEST_CASE("equal parts cover every element once and differ by one at most") {
  for (const int64_t n : {0, 1, 2, 7, 64, 1001, 214'983'680}) {
    for (const int num_parts : {1, 2, 3, 4, 5, 8, 16}) {
      int64_t next = 0;
      for (int index = 0; index < num_parts; ++index) {
        const auto part = equal_part(n, index, num_parts);
        REQUIRE(part.begin == next);
        REQUIRE(part.begin == n * index / num_parts);
        REQUIRE(part.size() >= n / num_parts);
        REQUIRE(part.size() <= n / num_parts + 1);
        next = part.end;
      }
      REQUIRE(next == n);
    }
  }
}

TEST_CASE("a part that does not exist is refused") {
  REQUIRE_THROWS_AS(equal_part(10, 2, 2), InternalError);
  REQUIRE_THROWS_AS(equal_part(10, -1, 2), InternalError);
  REQUIRE_THROWS_AS(equal_part(10, 0, 0), InternalError);
}

TEST_CASE("equal shares give the equal parts") {
  for (const int num_parts : {1, 2, 3, 7, 64, 1000}) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{214'983'680}}) {
      const auto parts =
          cut_by_shares({0, n}, std::vector<double>(static_cast<std::size_t>(num_parts), 0.3));
      for (int index = 0; index < num_parts; ++index) {
        REQUIRE(parts[static_cast<std::size_t>(index)] == equal_part(n, index, num_parts));
      }
    }
  }
}

TEST_CASE("parts follow their shares and leave no gap") {
  const std::vector<double> shares{3, 0, 1};
  CHECK(cut_by_shares({100, 108}, shares) ==
        std::vector<Range>{{100, 106}, {106, 106}, {106, 108}});
  CHECK(cut_by_shares({5, 5}, shares) == std::vector<Range>{{5, 5}, {5, 5}, {5, 5}});
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{}), InternalError);
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{0, 0}), InternalError);
  REQUIRE_THROWS_AS(cut_by_shares({0, 4}, std::vector<double>{2, -1}), InternalError);
}

TEST_CASE("parts cut at tensors end where tensors do") {
  const std::vector<int64_t> tensors{0, 10, 90, 100, 200};
  const std::vector<double> two{1, 1}, four{1, 1, 1, 1};
  CHECK(cut_at_borders({0, 200}, two, tensors) == std::vector<Range>{{0, 100}, {100, 200}});
  CHECK(cut_at_borders({0, 200}, four, tensors) ==
        std::vector<Range>{{0, 10}, {10, 100}, {100, 100}, {100, 200}});
  CHECK(cut_at_borders({0, 200}, std::vector<double>{0, 1}, tensors) ==
        std::vector<Range>{{0, 0}, {0, 200}});
  // One tensor larger than all others together.
  CHECK(cut_at_borders({0, 1000}, four, std::vector<int64_t>{0, 990, 1000}) ==
        std::vector<Range>{{0, 0}, {0, 990}, {990, 990}, {990, 1000}});
}

TEST_CASE("by bandwidth shares no uplink is busy longer than the exchange must last") {
  std::vector<std::vector<double>> links{{1e8},
                                         {1e8, 3e7},
                                         {2e8, 2e8, 2e8},
                                         {1e9, 1e8, 1e7},
                                         {1, 1, 1, 1, 1e6},
                                         {1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1},
                                         {1e-3, 1e-3, 2e-3}};
  std::mt19937 generator(5);
  for (std::size_t num_sites = 3; num_sites <= 17; ++num_sites) {
    auto& rates = links.emplace_back();
    std::uniform_real_distribution<double> exponent(6, 10);
    for (std::size_t site = 0; site < num_sites; ++site) {
      rates.push_back(std::pow(10, exponent(generator)));
    }
  }
  for (const auto& rates : links) {
    const auto num_sites = static_cast<double>(rates.size());
    const auto shares = bandwidth_shares(rates);
    REQUIRE(shares.size() == rates.size());
    double sum = 0, total_rate = 0;
    for (const double share : shares) {
      REQUIRE(share >= 0);
      sum += share;
    }
    REQUIRE(sum == Approx(1).epsilon(1e-12));
    if (rates.size() < 3) continue;
    for (const double rate : rates) total_rate += rate;
    // Nobody can be done before the slowest has sent its deltas, nor all before all is sent.
    const double least_seconds =
        std::max(1 / std::ranges::min(rates), 2 * (num_sites - 1) / total_rate);
    for (std::size_t site = 0; site < rates.size(); ++site) {
      // Its deltas for the others, and its part of the mean to each of them.
      const double sent = 1 - shares[site] + (num_sites - 1) * shares[site];
      REQUIRE(sent / rates[site] <= least_seconds * (1 + 1e-12));
    }
  }
}

TEST_CASE("equal links get equal shares and faster ones no smaller share") {
  for (const std::size_t num_sites : {1, 2, 3, 4, 9, 64}) {
    const std::vector<double> rates(num_sites, 2e8);
    const auto shares = bandwidth_shares(rates);
    for (const double share : shares) {
      REQUIRE(share == shares[0]);
      REQUIRE(share == Approx(1.0 / static_cast<double>(num_sites)).epsilon(1e-12));
    }
  }
  const auto shares = bandwidth_shares(std::vector<double>{1e8, 2e8, 2e8, 9e8});
  REQUIRE(std::ranges::is_sorted(shares));
  REQUIRE(shares[0] == 0);  // its link is busy with its own deltas
}

TEST_CASE("shares of links without a rate are a bug") {
  REQUIRE_THROWS_AS(bandwidth_shares({}), InternalError);
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    REQUIRE_THROWS_AS(bandwidth_shares(std::vector<double>{1e8, rate, 1e8}), InternalError);
  }
}

TEST_CASE("shares of others are refused unless they can be cut by") {
  const std::vector<double> good{0, 2, 1}, negative{1, -1, 2}, nothing{0, 0};
  CHECK(fault_of_shares(good, 3).empty());
  CHECK(cut_by_shares({0, 3}, good).size() == 3);
  CHECK(fault_of_shares(good, 2) == "3 shares of 2 members");
  CHECK(fault_of_shares({}, 0) == "no shares");
  CHECK(fault_of_shares(negative, 3) == "a share of -1; none may be below 0");
  CHECK(fault_of_shares(nothing, 2) == "shares that are all 0");
  CHECK_THROWS_AS(cut_by_shares({0, 3}, negative), InternalError);
  CHECK_THROWS_AS(cut_by_shares({0, 3}, nothing), InternalError);
}
