// How many TFLOPS a device reaches in the matrix products of a model.
//
// The products are the model's own shapes; each is timed warm, the median of many, and weighs as
// much as it has operations: all operations of a forward pass over the time of all its products.
// Not thread-safe: called by the thread that owns the device.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "trainer/base/clock.h"

namespace farstep {

// (rows, inner) times (inner, columns), `times` times in one forward pass.
struct MatrixProduct {
  int64_t inner = 1, columns = 1;
  int64_t times = 1;
};

// TF32: fp32 operands, products that the tensor cores round to 10 bits; no CPU has it.
enum class ProductType { kFP16, kBF16, kTF32, kFP32 };

// Floating-point operations of all products in one forward pass over `rows` rows: a multiplication
// and an addition each.
double total_flops(std::span<const MatrixProduct> products, int64_t rows);

struct ProductProbe {
  at::Device device = at::kCPU;
  std::vector<MatrixProduct> products;
  int64_t rows = 1;              // wanted; fewer are taken where the time would not suffice
  double seconds = 1;            // about how long a measurement may take
  std::function<void()> finish;  // returns when the device has done all work given to it
};

// Measured TFLOPS. Nothing if the device has no products of this type. LibTorch's other errors pass
// through.
std::optional<double> measure_tflops(const ProductProbe& probe, ProductType type,
                                     const Clock& clock);

}  // namespace farstep
