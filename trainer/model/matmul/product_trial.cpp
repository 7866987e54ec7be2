// Sample products, one for each class, because a way that is fast with long inner sums may be slow
// with a transposed factor.
#include "trainer/model/matmul/product_trial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace farstep {

namespace {

// A product of a class, large enough to fill the caches of a thread; a small one has the size of
// attention's tiles.
template <typename T>
class Sample {
 public:
  explicit Sample(ProductClass of) : of_(of) {
    if (of == ProductClass::kSmall) m_ = 128, n_ = 512, k_ = 64;
    constexpr auto kType = sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16;
    a_ = at::ones({m_, k_}, kType);
    b_ = at::ones({k_, n_}, kType);
    c_ = at::zeros({m_, n_}, at::kFloat);
  }

  double operations() const { return 2.0 * static_cast<double>(m_ * n_ * k_); }

  double seconds(ProductWay way) {
    const bool a_transposed = of_ == ProductClass::kWeightGradient;
    const bool b_transposed = of_ == ProductClass::kForward || of_ == ProductClass::kSmall;
    const auto began = std::chrono::steady_clock::now();
    multiply_by<T>(way, m_, n_, k_, {values(a_), a_transposed ? m_ : k_, a_transposed},
                   {values(b_), b_transposed ? k_ : n_, b_transposed},
                   {c_.mutable_data_ptr<float>(), n_});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

 private:
  static const T* values(const at::Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
  }

  ProductClass of_;
  // Choosing among all ways takes 0.1 s in all (docs/results/products.md). Larger samples would
  // take longer at every start.
  int64_t m_ = 256, n_ = 1024, k_ = 768;
  at::Tensor a_, b_, c_;
};

}  // namespace

template <typename T>
std::vector<ProductWay> ways_to_multiply() {
  std::vector<ProductWay> ways;
  for (int i = 0; i < kProductWays; ++i) {
    if (can_multiply_by<T>(static_cast<ProductWay>(i))) ways.push_back(static_cast<ProductWay>(i));
  }
  return ways;
}

// Takes the best of four turns: other programs only make a time longer. A way that takes twice the
// best time so far is dropped, so that slow ways do not take long. The first turn of each way is
// not counted, because its memory is cold.
template <typename T>
ProductTrial try_ways(ProductClass of) {
  constexpr int kTurns = 4;
  constexpr double kHopeless = 2;
  Sample<T> sample(of);
  ProductTrial trial{of, sample.operations(), {}};
  for (const auto way : ways_to_multiply<T>()) {
    sample.seconds(way);
    trial.times.push_back({way, HUGE_VAL});
  }
  double best = HUGE_VAL;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (auto& [way, seconds] : trial.times) {
      if (!seconds) continue;
      seconds = std::min(*seconds, sample.seconds(way));
      best = std::min(best, *seconds);
      if (*seconds > kHopeless * best) seconds = std::nullopt;
    }
  }
  return trial;
}

ProductWay best_of(const ProductTrial& trial) {
  // Times vary by a few percent; a preference within that makes processes choose alike.
  constexpr double kAsGood = 1.05;
  double best = HUGE_VAL;
  for (const auto& time : trial.times) best = std::min(best, time.seconds.value_or(HUGE_VAL));
  return std::ranges::find_if(trial.times,
                              [best](const WayTime& time) {
                                return time.seconds.value_or(HUGE_VAL) <= kAsGood * best;
                              })
      ->way;
}

template std::vector<ProductWay> ways_to_multiply<float>();
template std::vector<ProductWay> ways_to_multiply<BF16>();
template ProductTrial try_ways<float>(ProductClass);
template ProductTrial try_ways<BF16>(ProductClass);

}  // namespace farstep
