#include "heterogeneity/knowledge/batch_split.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::heterogeneity;

namespace {

double finish(const std::vector<int64_t>& shares, const std::vector<DeviceCost>& devices) {
  double last = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    last = std::max(last, devices[i].fixed_seconds +
                              devices[i].sequence_seconds * static_cast<double>(shares[i]));
  }
  return last;
}

// The finish time of the best of all splits.
double best_finish(int64_t batch, const std::vector<DeviceCost>& devices, std::size_t device = 0,
                   std::vector<int64_t> shares = {}) {
  if (device + 1 == devices.size()) {
    shares.push_back(batch);
    return finish(shares, devices);
  }
  shares.push_back(0);
  double best = std::numeric_limits<double>::infinity();
  for (shares.back() = 0; shares.back() <= batch; ++shares.back()) {
    best = std::min(best, best_finish(batch - shares.back(), devices, device + 1, shares));
  }
  return best;
}

}  // namespace

TEST_CASE("no split of the batch ends sooner") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> seconds(0.01, 1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<DeviceCost> devices(1 + trial % 4);
    for (auto& device : devices) device = {trial % 3 == 0 ? 0 : seconds(random), seconds(random)};
    const int64_t batch = trial % 11;
    const auto shares = split_batch(batch, devices);
    REQUIRE(shares.size() == devices.size());
    REQUIRE(std::accumulate(shares.begin(), shares.end(), int64_t{0}) == batch);
    REQUIRE(*std::min_element(shares.begin(), shares.end()) >= 0);
    REQUIRE(finish(shares, devices) == Approx(best_finish(batch, devices)));
  }
}

TEST_CASE("equal devices get equal shares and the first ones what is left") {
  for (const int64_t batch : {0, 1, 3, 4, 7, 64, 1001}) {
    for (const double fixed : {0.0, 0.1, 5.0}) {
      const auto shares = split_batch(batch, std::vector<DeviceCost>(4, {fixed, 0.1}));
      for (int64_t i = 0; i < 4; ++i) {
        REQUIRE(shares[static_cast<std::size_t>(i)] == batch / 4 + (i < batch % 4 ? 1 : 0));
      }
    }
  }
}

TEST_CASE("a device that only holds the others up gets nothing") {
  REQUIRE(split_batch(4, std::vector<DeviceCost>{{0, 0.1}, {0, 1}}) == std::vector<int64_t>{4, 0});
  REQUIRE(split_batch(4, std::vector<DeviceCost>{{9, 0.1}, {0, 1}}) == std::vector<int64_t>{0, 4});
}

TEST_CASE("a huge batch is split in proportion to speed") {
  const int64_t batch = int64_t{1} << 40;
  const auto shares = split_batch(batch, std::vector<DeviceCost>{{0, 1}, {0, 3}});
  REQUIRE(shares[0] + shares[1] == batch);
  REQUIRE(static_cast<double>(shares[0]) == Approx(0.75 * static_cast<double>(batch)));
}

TEST_CASE("a split over no device or with a free sequence is a bug") {
  REQUIRE_THROWS_AS(split_batch(1, {}), InternalError);
  REQUIRE_THROWS_AS(split_batch(1, std::vector<DeviceCost>{{0, 0}}), InternalError);
  REQUIRE_THROWS_AS(split_batch(-1, std::vector<DeviceCost>{{0, 1}}), InternalError);
}
