// The first GPU of this machine, for tests with the tag [gpu].
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>

#include "tests/support/skip.h"
#include "trainer/base/error.h"
#include "trainer/model/device.h"

namespace farstep {

// Nothing, and a skipped test, where there is none.
inline std::optional<at::Device> first_gpu() {
  DeviceConfig config;
  config.kind = DeviceKind::kCuda;
  try {
    return open_device(config);
  } catch (const ConfigError& error) {
    skip_test(fmt::format("no usable NVIDIA GPU: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace farstep
