// What the figures of a delta cost on one core, beside the other passes over its fragment before a
// site arrives at a sync.
//
//   delta_bench [REPEATS]
//
// Milliseconds of processor time for 64 Mi values, the best of REPEATS (7); the passes take turns.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "outer_optimizer/outer_optimizer.h"
#include "outer_optimizer/schedule/extent.h"

using namespace farstep;

namespace {

constexpr int64_t kValues = 64 << 20;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 7;
  std::vector<float> theta(kValues), local(kValues), delta(kValues);
  for (int64_t k = 0; k < kValues; ++k) {
    const auto place = static_cast<std::size_t>(k);
    theta[place] = std::sin(static_cast<float>(k));
    local[place] = theta[place] * 1.001F;
  }
  const outer_optimizer::OuterOptimizer outer({}, theta);
  const outer_optimizer::Range all{0, kValues};
  double sum = 0;  // of the results, so that none is left out
  struct Pass {
    std::string name;
    std::function<void()> run;
    double best = 1e9;
  };
  std::array passes{
      Pass{"delta", [&] { sum += static_cast<double>(outer.delta(all, local, delta)); }},
      Pass{"checksum of theta_global", [&] { sum += static_cast<double>(outer.checksum(all)); }},
      Pass{"norm and largest value", [&] { sum += outer_optimizer::extent_of(delta).norm; }}};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (auto& pass : passes) {
      const double began = processor_seconds();
      pass.run();
      pass.best = std::min(pass.best, processor_seconds() - began);
    }
  }
  for (const auto& pass : passes) fmt::print("{:<28} {:6.1f} ms\n", pass.name, pass.best * 1e3);
  return std::isnan(sum) ? 1 : 0;
}
