#include "trainer/probe/device_products.h"

#include <ATen/Context.h>

#include <string_view>

#include "trainer/model/device.h"

namespace farstep {

namespace {

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

// Sets whether fp32 products may be TF32, while it lives.
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

// GPUs without a type's instructions report it in several ways, of which these are known.
bool is_unsupported(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
         text.find("NOT_SUPPORTED") != text.npos || text.find("ARCH_MISMATCH") != text.npos;
}

struct Factors {
  at::Tensor x, weight;
};

heterogeneity::RunProducts prepare_products(const DeviceProducts& wanted, ProductType type,
                                            int64_t rows) {
  const auto options = at::TensorOptions(wanted.device).dtype(scalar_type(type));
  std::vector<Factors> factors;
  for (const auto& product : wanted.products) {
    // Random values: products of zeros draw less power, and run at a higher clock.
    factors.push_back({at::randn({rows, product.inner}, options),
                       at::randn({product.columns, product.inner}, options)});
  }
  synchronize(wanted.device);  // the first product must not wait for the factors
  return [device = wanted.device, factors = std::move(factors)](std::size_t i, int64_t repeats) {
    // The results are freed at once; the allocator hands the same memory to the next product.
    for (int64_t k = 0; k < repeats; ++k) at::linear(factors[i].x, factors[i].weight);
    synchronize(device);
  };
}

}  // namespace

std::optional<double> measure_tflops(const DeviceProducts& wanted, ProductType type,
                                     const Clock& clock) try {
  if (wanted.device.is_cpu() && type == ProductType::kTF32) return std::nullopt;
  const TF32Setting setting(type == ProductType::kTF32);
  const auto prepare = [&](int64_t rows) { return prepare_products(wanted, type, rows); };
  return heterogeneity::measure_tflops({.products = wanted.products,
                                        .rows = wanted.rows,
                                        .seconds = wanted.seconds,
                                        .prepare = prepare},
                                       clock);
} catch (const c10::Error& error) {
  if (!is_unsupported(error)) throw;
  return std::nullopt;
}

}  // namespace farstep
