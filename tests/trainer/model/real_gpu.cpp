#include <iostream>

#include "tests/trainer/model/tested_gpu.h"
#include "trainer/base/error.h"
#include "trainer/model/device.h"

namespace farstep {

std::optional<at::Device> tested_gpu() {
  DeviceConfig config;
  config.kind = DeviceKind::kCuda;
  try {
    return open_device(config);
  } catch (const ConfigError& error) {
    std::cout << "SKIPPED: " << error.what() << "\n";
    return std::nullopt;
  }
}

}  // namespace farstep
