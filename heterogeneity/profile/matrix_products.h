// Measures the TFLOPS that a device reaches in the matrix products of a model.
//
// The products have the model's own shapes. Each is timed warm, as the median of many. The result
// is the number of operations of a forward pass over the time of all its products. Not thread-safe:
// the thread that owns the device calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/base/clock.h"

namespace farstep::heterogeneity {

// (rows, inner) times (inner, columns), `times` times in a forward pass.
struct MatrixProduct {
  int64_t inner = 1, columns = 1;
  int64_t times = 1;
};

// Floating-point operations of all products in one forward pass over `rows` rows: a multiplication
// and an addition each.
double total_flops(std::span<const MatrixProduct> products, int64_t rows);

// Runs product `product` so many times in a row, and returns when the device has done it.
using RunProducts = std::function<void(std::size_t product, int64_t repeats)>;

struct ProductProbe {
  std::vector<MatrixProduct> products;
  int64_t rows = 1;    // wanted; fewer are taken where the time would not suffice
  double seconds = 1;  // about how long the measurement may take
  // Makes factors with so many rows for all products; those that were made before are of no use.
  std::function<RunProducts(int64_t rows)> prepare;
};

// Measured TFLOPS. What the probe's functions throw passes through.
double measure_tflops(const ProductProbe& probe, const Clock& clock);

}  // namespace farstep::heterogeneity
