#include "trainer/reduction/host_reduction.h"

#include <cmath>
#include <cstring>
#include <future>
#include <latch>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

void alone(int64_t begin, int64_t end, const std::function<void(int64_t, int64_t)>& work) {
  work(begin, end);
}

using Gradients = std::vector<std::vector<float>>;

// Of magnitudes so unlike that the order of a sum shows in its bits.
Gradients some_gradients(std::size_t devices, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> exponent(-12, 12);
  Gradients gradients(devices, std::vector<float>(size));
  for (auto& gradient : gradients) {
    for (auto& value : gradient)
      value = std::exp2(exponent(random)) * (random() % 2 ? 1.0F : -1.0F);
  }
  return gradients;
}

std::vector<float> sum_in_order(const Gradients& gradients) {
  auto sum = gradients.front();
  for (std::size_t device = 1; device < gradients.size(); ++device) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[device][i];
  }
  return sum;
}

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

std::vector<std::span<float>> spans(Gradients& gradients) {
  return {gradients.begin(), gradients.end()};
}

// Runs `task` for every device on a thread of its own; returns what they return.
template <typename Task>
std::vector<bool> on_all(std::size_t devices, const Task& task) {
  std::vector<std::future<bool>> running;
  for (std::size_t device = 0; device < devices; ++device) {
    running.push_back(std::async(std::launch::async, [&task, device] { return task(device); }));
  }
  std::vector<bool> returned;
  for (auto& one : running) returned.push_back(one.get());
  return returned;
}

// Says that everything is final, in parts of `part` values from the end on.
void make_final(SiteReduction& reduction, std::size_t device, int64_t size, int64_t part) {
  for (int64_t end = size; end > 0; end -= part) {
    reduction.ready(device, std::max<int64_t>(0, end - part), end);
  }
}

}  // namespace

TEST_CASE("every device ends with the sum in order of the devices") {
  for (const std::size_t devices : {1U, 2U, 3U, 5U}) {
    for (const int64_t size : {1, 7, 1024, 3001}) {
      for (const int64_t bucket_values : {1, 100, 5000}) {
        auto gradients = some_gradients(devices, static_cast<std::size_t>(size), 7);
        const auto wanted = sum_in_order(gradients);
        HostReduction reduction(spans(gradients), bucket_values, alone);
        reduction.begin_step();
        on_all(devices, [&](std::size_t device) {
          make_final(reduction, device, size, 1 + static_cast<int64_t>(device) * 300);
          return reduction.finish(device);
        });
        for (const auto& gradient : gradients) CHECK(same_bits(gradient, wanted));
      }
    }
  }
}

TEST_CASE("steps follow each other and what a device wrote is seen by all") {
  constexpr std::size_t kDevices = 3, kSize = 500;
  auto gradients = some_gradients(kDevices, kSize, 1);
  HostReduction reduction(spans(gradients), 60, alone);
  std::vector<int> said(kDevices);
  for (int step = 0; step < 50; ++step) {
    auto fresh = some_gradients(kDevices, kSize, static_cast<unsigned>(step));
    const auto wanted = sum_in_order(fresh);
    reduction.begin_step();
    const auto agreed = on_all(kDevices, [&](std::size_t device) {
      gradients[device] = fresh[device];
      make_final(reduction, device, kSize, 110);
      said[device] = step;
      if (!reduction.finish(device)) return false;
      return said == std::vector<int>(kDevices, step) && same_bits(gradients[device], wanted);
    });
    CHECK(agreed == std::vector<bool>(kDevices, true));
  }
}

TEST_CASE("who waits shares in the adding up") {
  auto gradients = some_gradients(2, 64, 3);
  std::mutex mutex;
  std::set<std::thread::id> adders;
  std::latch both(2);
  // Two buckets, each of which waits for another thread to have the other one.
  HostReduction reduction(spans(gradients), 32, [&](int64_t begin, int64_t end, const auto& work) {
    {
      const std::lock_guard lock(mutex);
      adders.insert(std::this_thread::get_id());
    }
    both.arrive_and_wait();
    work(begin, end);
  });
  reduction.begin_step();
  on_all(2, [&](std::size_t device) {
    reduction.ready(device, 0, 64);
    return reduction.finish(device);
  });
  CHECK(adders.size() == 2);
}

TEST_CASE("a device does not wait before its backward is over") {
  auto gradients = some_gradients(2, 10, 3);
  HostReduction reduction(spans(gradients), 3, alone);
  reduction.begin_step();
  make_final(reduction, 0, 10, 2);  // returns though the other device has not begun
  make_final(reduction, 1, 10, 10);
  CHECK(same_bits(gradients[0], gradients[1]));
}

TEST_CASE("a device that fails lets all others go") {
  constexpr std::size_t kDevices = 4;
  auto gradients = some_gradients(kDevices, 100, 3);
  HostReduction reduction(spans(gradients), 10, alone);
  for (int step = 0; step < 20; ++step) {
    reduction.begin_step();
    const auto finished = on_all(kDevices, [&](std::size_t device) {
      if (device == 2) {
        reduction.ready(device, 50, 100);
        reduction.abandon();
        return false;
      }
      make_final(reduction, device, 100, 7);
      return reduction.finish(device);
    });
    CHECK(finished == std::vector<bool>(kDevices, false));
  }
  const auto wanted = sum_in_order(gradients);
  reduction.begin_step();  // the next step is as any
  on_all(kDevices, [&](std::size_t device) {
    make_final(reduction, device, 100, 100);
    return reduction.finish(device);
  });
  for (const auto& gradient : gradients) CHECK(same_bits(gradient, wanted));
}

TEST_CASE("a device that finishes with values left is a bug") {
  auto gradients = some_gradients(1, 10, 3);
  HostReduction reduction(spans(gradients), 3, alone);
  reduction.begin_step();
  reduction.ready(0, 1, 10);
  CHECK_THROWS_AS(reduction.finish(0), InternalError);
}

TEST_CASE("gradients of unlike sizes are a bug") {
  Gradients gradients{std::vector<float>(3), std::vector<float>(4)};
  CHECK_THROWS_AS(HostReduction(spans(gradients), 3, alone), InternalError);
  CHECK_THROWS_AS(HostReduction({}, 3, alone), InternalError);
}

}  // namespace farstep
