#include "trainer/inner/device_balance.h"

#include <numeric>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// Runs `steps` steps on devices of these seconds a sequence; returns the last step's shares.
std::vector<int64_t> shares_after(DeviceBalance& balance, int64_t batch, int steps,
                                  const std::vector<double>& sequence_seconds) {
  std::vector<int64_t> shares;
  for (int step = 0; step < steps; ++step) {
    shares = balance.shares(batch);
    CHECK(std::accumulate(shares.begin(), shares.end(), int64_t{0}) == batch);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      seconds.push_back(static_cast<double>(shares[i]) * sequence_seconds[i]);
    }
    balance.observe(seconds);
  }
  return shares;
}

}  // namespace

TEST_CASE("one device has the whole batch") {
  DeviceBalance balance({std::nullopt});
  CHECK(shares_after(balance, 7, 3, {0.5}) == std::vector<int64_t>{7});
}

TEST_CASE("devices of unknown speed begin with equal shares and end in proportion") {
  DeviceBalance balance({std::nullopt, std::nullopt, std::nullopt});
  CHECK(balance.shares(12) == std::vector<int64_t>{4, 4, 4});
  CHECK(shares_after(balance, 12, 2, {0.1, 0.1, 0.2}) == std::vector<int64_t>{5, 5, 2});
}

TEST_CASE("known speeds share out the first step") {
  DeviceBalance balance({0.1, 0.3});
  CHECK(balance.shares(8) == std::vector<int64_t>{6, 2});
}

TEST_CASE("a device that slows down gets less") {
  DeviceBalance balance({0.1, 0.1});
  CHECK(shares_after(balance, 12, 5, {0.1, 0.1}) == std::vector<int64_t>{6, 6});
  CHECK(shares_after(balance, 12, 15, {0.1, 0.2}) == std::vector<int64_t>{8, 4});
}

TEST_CASE("small noise does not move the shares") {
  DeviceBalance balance({0.1, 0.1});
  balance.shares(100);
  for (int step = 0; step < 40; ++step) {
    balance.observe(std::vector<double>{step % 2 ? 5.1 : 4.9, step % 2 ? 4.9 : 5.1});
    CHECK(balance.shares(100) == std::vector<int64_t>{50, 50});
  }
}

TEST_CASE("a device that had no share is tried as if it were the fastest") {
  DeviceBalance balance({0.1, std::nullopt});
  CHECK(balance.shares(4) == std::vector<int64_t>{2, 2});
}

TEST_CASE("another batch is shared out anew") {
  DeviceBalance balance({0.1, 0.1});
  CHECK(balance.shares(4) == std::vector<int64_t>{2, 2});
  CHECK(balance.shares(1) == std::vector<int64_t>{1, 0});
  balance.observe(std::vector<double>{0.1, 0.0});
  CHECK(balance.shares(6) == std::vector<int64_t>{3, 3});
}

TEST_CASE("times of another number of devices are a bug") {
  DeviceBalance balance({0.1, 0.1});
  balance.shares(4);
  CHECK_THROWS_AS(balance.observe(std::vector<double>{0.1}), InternalError);
}

}  // namespace farstep
