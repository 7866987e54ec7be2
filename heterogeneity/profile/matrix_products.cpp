#include "heterogeneity/profile/matrix_products.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heterogeneity/profile/medians.h"

namespace farstep {

namespace {

constexpr int64_t kFirstRows = 16;
constexpr int64_t kLeastRepeats = 5;
constexpr double kSampleSeconds = 1e-3;  // short products are timed several in a row
constexpr int64_t kMostInSample = 1000;

at::ScalarType scalar_type(ProductType type) {
  switch (type) {
    case ProductType::kFP16:
      return at::kHalf;
    case ProductType::kBF16:
      return at::kBFloat16;
    default:
      return at::kFloat;
  }
}

// Sets whether fp32 products may be TF32, for its own lifetime.
class TF32Setting {
 public:
  explicit TF32Setting(bool allow) : before_(at::globalContext().allowTF32CuBLAS()) {
    at::globalContext().setAllowTF32CuBLAS(allow);
  }
  ~TF32Setting() { at::globalContext().setAllowTF32CuBLAS(before_); }
  TF32Setting(const TF32Setting&) = delete;
  TF32Setting& operator=(const TF32Setting&) = delete;

 private:
  const bool before_;
};

bool is_unsupported(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
         text.find("NOT_SUPPORTED") != text.npos || text.find("ARCH_MISMATCH") != text.npos;
}

struct Operands {
  at::Tensor x, weight;
};

std::vector<Operands> make_operands(const ProductProbe& probe, ProductType type, int64_t rows) {
  const auto options = at::TensorOptions(probe.device).dtype(scalar_type(type));
  std::vector<Operands> operands;
  for (const auto& product : probe.products) {
    operands.push_back({at::randn({rows, product.inner}, options),
                        at::randn({product.columns, product.inner}, options)});
  }
  return operands;
}

// Seconds of one product, timed over `repeats` in a row.
double time_product(const ProductProbe& probe, const Operands& operands, int64_t repeats,
                    const Clock& clock) {
  probe.finish();
  const double begin = clock.now_seconds();
  for (int64_t i = 0; i < repeats; ++i) at::linear(operands.x, operands.weight);
  probe.finish();
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

std::optional<double> measure_tflops(const ProductProbe& probe, ProductType type,
                                     const Clock& clock) try {
  if (probe.device.is_cpu() && type == ProductType::kTF32) return std::nullopt;
  const TF32Setting setting(type == ProductType::kTF32);
  // As many rows as leave time for the repeats: found from below, as a device may lack the units
  // for a type and be a thousand times slower in it.
  int64_t rows = std::min(kFirstRows, probe.rows);
  std::vector<Operands> operands;
  std::vector<double> estimates(probe.products.size());
  while (true) {
    operands = make_operands(probe, type, rows);
    double pass_seconds = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      time_product(probe, operands[i], 1, clock);  // warms up
      estimates[i] = time_product(probe, operands[i], 1, clock);
      pass_seconds += estimates[i];
    }
    const double next_seconds = 2 * pass_seconds * static_cast<double>(kLeastRepeats + 2);
    if (rows == probe.rows || next_seconds > probe.seconds) break;
    rows = std::min(2 * rows, probe.rows);
  }
  const auto timed = [&](std::size_t i) {
    const double wanted = std::ceil(kSampleSeconds / std::max(estimates[i], 1e-9));
    const auto in_sample = static_cast<int64_t>(std::min<double>(wanted, kMostInSample));
    return time_product(probe, operands[i], in_sample, clock);
  };
  const auto seconds = medians_in_turn(operands.size(), timed,
                                       {.least = kLeastRepeats, .seconds = probe.seconds}, clock);
  double pass_seconds = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    pass_seconds += seconds[i] * static_cast<double>(probe.products[i].times);
  }
  return total_flops(probe.products, rows) / pass_seconds / 1e12;
} catch (const c10::Error& error) {
  if (!is_unsupported(error)) throw;
  return std::nullopt;
}

}  // namespace farstep
