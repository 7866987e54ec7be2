// Products by the fastest algorithm of a real GPU: they are those of fp64, whichever is chosen.
#include "trainer/model/gpu_ops/gpu_products.h"

#include <ATen/Context.h>

#include "tests/support/catch.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"

namespace farstep {

namespace {

// Enough operations that the algorithms are measured; sides that are multiples of 16, as FP8 needs
// them, and odd ones, whose rows are not aligned.
struct Sides {
  int64_t m, n, k;
};
const Sides kSides[] = {{1024, 768, 1280}, {513, 1021, 1027}};

const BF16* values_of(const at::Tensor& tensor) {
  return static_cast<const BF16*>(tensor.const_data_ptr());
}

// A factor (rows, columns), or its transpose in memory.
struct RandomFactor {
  at::Tensor stored;
  bool transposed;

  RandomFactor(int64_t rows, int64_t columns, bool turned, at::Device gpu)
      : stored(at::randn({turned ? columns : rows, turned ? rows : columns},
                         at::TensorOptions(gpu).dtype(at::kBFloat16))),
        transposed(turned) {}

  Factor<BF16> factor() const { return {values_of(stored), stored.size(1), transposed}; }
  at::Tensor exact() const {
    const auto all = stored.to(at::kDouble);
    return transposed ? all.t() : all;
  }
};

double relative_error(const at::Tensor& result, const at::Tensor& exact) {
  return ((result.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

// Rounding to bf16 errs by 2^-9 at most; sums in fp32 err by far less.
constexpr double kRounded = 2e-3, kExact = 1e-5;

}  // namespace

TEST_CASE("a GPU's products are those of fp64 in every layout", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  GpuProducts products(*gpu);
  for (const auto& [m, n, k] : kSides) {
    for (const auto& [a_transposed, b_transposed] :
         {std::pair{false, true}, {false, false}, {true, false}}) {
      CAPTURE(m, n, k, a_transposed, b_transposed);
      const RandomFactor a(m, k, a_transposed, *gpu), b(k, n, b_transposed, *gpu);
      const auto wanted = at::mm(a.exact(), b.exact());
      const auto options = at::TensorOptions(*gpu);
      const auto first = at::randn({m, n}, options);
      const auto sum = first.clone(), exact = at::empty({m, n}, options),
                 rounded = at::empty({m, n}, options.dtype(at::kBFloat16));
      // The call that adds comes first, so it is the one that measures.
      products.multiply(m, n, k, a.factor(), b.factor(),
                        {.exact = sum.mutable_data_ptr<float>(), .add = true});
      products.multiply(m, n, k, a.factor(), b.factor(),
                        {.exact = exact.mutable_data_ptr<float>()});
      products.multiply(m, n, k, a.factor(), b.factor(),
                        {.rounded = static_cast<BF16*>(rounded.mutable_data_ptr())});
      CHECK(relative_error(sum, wanted + first.to(at::kDouble)) < kExact);
      CHECK(relative_error(exact, wanted) < kExact);
      CHECK(relative_error(rounded, wanted) < kRounded);
      // Once chosen, an algorithm stays.
      const auto again = at::empty_like(exact);
      products.multiply(m, n, k, a.factor(), b.factor(),
                        {.exact = again.mutable_data_ptr<float>()});
      CHECK(at::equal(exact, again));
    }
  }
}

TEST_CASE("a GPU's FP8 products are those of fp64, with and without the present values", "[gpu]") {
  const auto gpu = tested_fp8_gpu();
  if (!gpu) return;
  GpuProducts products(*gpu);
  const auto& [m, n, k] = kSides[0];
  const auto options = at::TensorOptions(*gpu);
  const auto scale = at::full({1}, 0.25F, options);
  for (const auto format : {Fp8Format::kE4M3, Fp8Format::kE5M2}) {
    for (const bool fast : {false, true}) {
      CAPTURE(format == Fp8Format::kE4M3, fast);
      const auto type = format == Fp8Format::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
      const auto a = at::randn({m, k}, options).to(type);
      const auto b = at::randn({n, k}, options).to(at::kFloat8_e4m3fn);
      const auto codes = [&](const at::Tensor& tensor, Fp8Format of) {
        return Fp8Factor{static_cast<const uint8_t*>(tensor.const_data_ptr()),
                         scale.const_data_ptr<float>(), of};
      };
      const auto wanted =
          at::mm(a.to(at::kDouble), b.to(at::kDouble).t()) * (scale * scale).to(at::kDouble);
      const auto first = at::randn({m, n}, options);
      const auto sum = first.clone(), exact = at::empty({m, n}, options),
                 rounded = at::empty({m, n}, options.dtype(at::kBFloat16));
      const auto left = codes(a, format), right = codes(b, Fp8Format::kE4M3);
      products.multiply_fp8(m, n, k, left, right, fast, {.exact = exact.mutable_data_ptr<float>()});
      products.multiply_fp8(m, n, k, left, right, fast,
                            {.exact = sum.mutable_data_ptr<float>(), .add = true});
      products.multiply_fp8(m, n, k, left, right, fast,
                            {.rounded = static_cast<BF16*>(rounded.mutable_data_ptr())});
      // A tensor core adds FP8 products with fewer bits than fp32 has, also where it is not asked
      // to be fast.
      const double limit = fast ? 1e-2 : 1e-3;
      CHECK(relative_error(exact, wanted) < limit);
      CHECK(relative_error(sum, wanted + first.to(at::kDouble)) < limit);
      CHECK(relative_error(rounded, wanted) < limit + kRounded);
    }
  }
}

TEST_CASE("if LibTorch must be deterministic, a GPU's products are LibTorch's", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  const auto& [m, n, k] = kSides[0];
  const RandomFactor a(m, k, false, *gpu), b(k, n, true, *gpu);
  const auto options = at::TensorOptions(*gpu);
  const auto own = at::empty({m, n}, options), libtorch = at::empty({m, n}, options);
  struct Deterministic {
    Deterministic() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
    ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, false); }
  };
  const Deterministic deterministic;
  GpuProducts(*gpu).multiply(m, n, k, a.factor(), b.factor(),
                             {.exact = own.mutable_data_ptr<float>()});
  gpu_multiply(*gpu, m, n, k, a.factor(), b.factor(),
               {.exact = libtorch.mutable_data_ptr<float>()});
  CHECK(at::equal(own, libtorch));
}

}  // namespace farstep
