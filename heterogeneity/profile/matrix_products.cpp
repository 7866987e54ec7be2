// The products of the model itself, not a square one: their rate is what a training step reaches.
#include "heterogeneity/profile/matrix_products.h"

#include <algorithm>
#include <cmath>

#include "heterogeneity/profile/medians.h"

namespace farstep::heterogeneity {

namespace {

// Few, because a device may emulate a type.
constexpr int64_t kFirstRows = 16;
// A median of five ignores two disturbed turns.
constexpr int64_t kLeastRepeats = 5;
// A millisecond is far above the clock's resolution and the cost of a launch.
constexpr double kSampleSeconds = 1e-3;  // shorter products are timed several at a time
// Bounds a sample whose estimate was near 0.
constexpr int64_t kMostInSample = 1000;

// Seconds of one product, timed over `repeats` in a row.
double time_product(const RunProducts& run, std::size_t product, int64_t repeats,
                    const Clock& clock) {
  const double begin = clock.now_seconds();
  run(product, repeats);
  return (clock.now_seconds() - begin) / static_cast<double>(repeats);
}

}  // namespace

double total_flops(std::span<const MatrixProduct> products, int64_t rows) {
  double flops = 0;
  for (const auto& product : products) {
    flops += 2.0 * static_cast<double>(rows) * static_cast<double>(product.inner) *
             static_cast<double>(product.columns) * static_cast<double>(product.times);
  }
  return flops;
}

double measure_tflops(const ProductProbe& probe, const Clock& clock) {
  // As many rows as leave time for the repeats: found from below, as a device may lack the units
  // for a type and be a thousand times slower in it.
  int64_t rows = std::min(kFirstRows, probe.rows);
  const std::size_t num_products = probe.products.size();
  RunProducts run;
  std::vector<double> estimates(num_products);
  while (true) {
    run = probe.prepare(rows);
    double pass_seconds = 0;
    for (std::size_t i = 0; i < num_products; ++i) {
      time_product(run, i, 1, clock);  // warms up
      estimates[i] = time_product(run, i, 1, clock);
      pass_seconds += estimates[i];
    }
    // Twice the rows take twice the time; two runs to warm up come before the repeats.
    const double next_seconds = 2 * pass_seconds * static_cast<double>(kLeastRepeats + 2);
    if (rows == probe.rows || next_seconds > probe.seconds) break;
    rows = std::min(2 * rows, probe.rows);
  }
  const auto timed = [&](std::size_t i) {
    const double wanted = std::ceil(kSampleSeconds / std::max(estimates[i], 1e-9));
    const auto in_sample = static_cast<int64_t>(std::min<double>(wanted, kMostInSample));
    return time_product(run, i, in_sample, clock);
  };
  const auto seconds = medians_in_turn(num_products, timed,
                                       {.least = kLeastRepeats, .seconds = probe.seconds}, clock);
  double pass_seconds = 0;
  for (std::size_t i = 0; i < num_products; ++i) {
    pass_seconds += seconds[i] * static_cast<double>(probe.products[i].times);
  }
  return total_flops(probe.products, rows) / pass_seconds / 1e12;
}

}  // namespace farstep::heterogeneity
