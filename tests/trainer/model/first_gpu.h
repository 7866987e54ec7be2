// The first GPU of this machine, for tests with the tag [gpu].
#pragma once

#include <ATen/ATen.h>

#include <iostream>
#include <optional>

#include "trainer/base/error.h"
#include "trainer/model/device.h"

namespace farstep {

// Nothing, and the line of a skipped test, where there is none.
inline std::optional<at::Device> first_gpu() {
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
