#include "trainer/inner/cores.h"

#include <ATen/Parallel.h>

#include <mutex>
#include <thread>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

DeviceConfig slice(int64_t threads, Cores cores = {}) {
  DeviceConfig device;
  device.threads = threads;
  device.cores = std::move(cores);
  return device;
}

// The threads of a loop that may have three; in builds by clang, whose loops are plain ones, one.
#ifdef _OPENMP
constexpr std::size_t kThreads = 3;
#else
constexpr std::size_t kThreads = 1;
#endif

// The cores that the threads of a parallel loop may run on.
std::vector<Cores> cores_of_threads() {
  std::mutex mutex;
  std::vector<Cores> found;
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) {
    const auto own = allowed_cores();
    const std::lock_guard lock(mutex);
    found.push_back(own);
  });
  return found;
}

}  // namespace

TEST_CASE("slices have the cores that they name and nothing else is pinned") {
  const std::vector<DeviceConfig> devices{slice(1), slice(2, {3, 5})};
  CHECK(assign_cores(devices, false, {1, 3, 5}) == std::vector<Cores>{{}, {3, 5}});
}

TEST_CASE("pinned slices have the next cores that nobody names and GPUs none") {
  auto gpu = slice(1);
  gpu.kind = DeviceKind::kCuda;
  const std::vector<DeviceConfig> devices{slice(2), gpu, slice(1, {2}), slice(1)};
  CHECK(assign_cores(devices, true, {0, 2, 4, 6, 8}) == std::vector<Cores>{{0, 4}, {}, {2}, {6}});
}

TEST_CASE("threads that do not fit into the cores are refused") {
  const std::vector<DeviceConfig> devices{slice(2), slice(2)};
  CHECK_NOTHROW(assign_cores(devices, true, {0, 1, 2, 3}));
  CHECK_NOTHROW(assign_cores(devices, false, {0}));
  CHECK_THROWS_AS(assign_cores(devices, true, {0, 1, 2}), ConfigError);
  CHECK_THROWS_WITH(assign_cores(devices, true, {0, 1, 2}),
                    "pin: devices[1] has 2 threads, but of the 3 cores that this process may run "
                    "on only 1 are left; give the devices fewer threads, or set pin to false");
}

TEST_CASE("a core that the process may not run on is refused") {
  const std::vector<DeviceConfig> devices{slice(1), slice(1, {9})};
  CHECK_THROWS_WITH(assign_cores(devices, false, {0, 1}),
                    "devices[1].cores: this process may not run on core 9");
}

TEST_CASE("all threads of a loop stay on the slice's cores also those that start later") {
  const auto before = allowed_cores();
  REQUIRE(!before.empty());
  const Cores last{before.back()};
  std::vector<Cores> pinned, started_later;
  std::thread device([&] {
    at::set_num_threads(3);
    cores_of_threads();
    stay_on_cores(last);
    pinned = cores_of_threads();
    at::set_num_threads(2);  // ends a thread
    cores_of_threads();
    at::set_num_threads(3);
    started_later = cores_of_threads();
  });
  device.join();
  CHECK(pinned == std::vector<Cores>(kThreads, last));
  CHECK(started_later == std::vector<Cores>(kThreads, last));
  CHECK(allowed_cores() == before);
}

TEST_CASE("without cores threads run where they did") {
  const auto before = allowed_cores();
  stay_on_cores({});
  CHECK(allowed_cores() == before);
}

}  // namespace farstep
