// Measures the TFLOPS of LibTorch's matrix products of one type on a device.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "heterogeneity/profile/matrix_products.h"
#include "trainer/base/clock.h"

namespace farstep {

// TF32: fp32 factors, which the tensor cores round to 10 bits; no CPU has it.
enum class ProductType { kFP16, kBF16, kTF32, kFP32 };

struct DeviceProducts {
  at::Device device = at::kCPU;
  std::vector<heterogeneity::MatrixProduct> products;
  int64_t rows = 1;    // as in ProductProbe
  double seconds = 1;  // likewise
};

// Returns the measured TFLOPS; nullopt if the device has no products of this type. Passes
// LibTorch's other errors through.
std::optional<double> measure_tflops(const DeviceProducts& wanted, ProductType type,
                                     const Clock& clock);

}  // namespace farstep
