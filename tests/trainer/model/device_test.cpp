#include "trainer/model/device.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

DeviceConfig device_config(DeviceKind kind, int64_t index, int64_t threads) {
  DeviceConfig config;
  config.kind = kind;
  config.index = index;
  config.threads = threads;
  return config;
}

}  // namespace

TEST_CASE("a cpu slice gets its threads") {
  CHECK(open_device(device_config(DeviceKind::kCpu, 0, 2)).is_cpu());
  CHECK(at::get_num_threads() == 2);
  CHECK(open_device(device_config(DeviceKind::kCpu, 0, 1)).is_cpu());
  CHECK(at::get_num_threads() == 1);
  CHECK_NOTHROW(synchronize(at::kCPU));
}

TEST_CASE("devices without a GPU load no library for one") {
  const std::vector<DeviceConfig> slices(2, device_config(DeviceKind::kCpu, 0, 1));
  load_gpu_library(slices);
  CHECK(dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD) == nullptr);
}

TEST_CASE("a GPU that is not there is a config error that says what is missing") {
  const auto config = device_config(DeviceKind::kCuda, 99, 1);
  CHECK_THROWS_AS(open_device(config), ConfigError);
  CHECK_THROWS_WITH(open_device(config), Catch::StartsWith("device cuda:99: "));
}

}  // namespace farstep
