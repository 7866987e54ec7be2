// Every site draws the starting weights itself instead of receiving them. So the values must be
// equal bit by bit on all processors, libraries and numbers of threads.
#include "trainer/model/parameters/normal_values.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Values from one engine: enough that seeding it, which takes as long as some thousand values, does
// not count. Part of what the bits depend on.
constexpr int64_t kChunkValues = 1 << 16;

// Returns the natural logarithm of x in (0, 1] by basic operations only, which IEEE 754 rounds
// alike everywhere. std::log differs in the last bit between libraries and processors.
double portable_log(double x) {
  constexpr double kLog2 = 0.693147180559945309;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [0.5, 1)
  const double ratio = (mantissa - 0.75) / (mantissa + 0.75);
  const double square = ratio * ratio;
  double sum = 0;  // log(mantissa / 0.75) = 2 atanh(ratio), |ratio| <= 0.2
  // The next term, 0.2^25 / 25, is below the rounding of a double.
  for (int power = 23; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  constexpr double kLogThreeQuarters = -0.287682072451780927;
  return 2 * ratio * sum + kLogThreeQuarters + exponent * kLog2;
}

// Marsaglia's polar method (Marsaglia and Bray 1964). It needs only a logarithm and a root;
// Box-Muller needs sine and cosine too, which libraries round in different ways.
class NormalEngine {
 public:
  NormalEngine(uint64_t seed, uint64_t chunk) {
    std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                           static_cast<uint32_t>(chunk), static_cast<uint32_t>(chunk >> 32)};
    engine_.seed(sequence);
  }

  double next() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double u = 0;
    double v = 0;
    double square = 0;
    do {
      u = uniform();
      v = uniform();
      square = u * u + v * v;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * portable_log(square) / square);
    spare_ = v * factor;
    has_spare_ = true;
    return u * factor;
  }

 private:
  // Returns a value in [-1, 1), in steps of 2^-52.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-52 - 1; }

  std::mt19937_64 engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace

// Chunks have engines of their own, seeded by their number, so the values do not depend on threads.
void fill_normal(std::span<float> values, std::span<const NormalStretch> stretches, uint64_t seed) {
  const auto size = static_cast<int64_t>(values.size());
  FARSTEP_CHECK(size == 0 || (!stretches.empty() && stretches.back().end == size),
                "stretches for {} values", size);
  const int64_t chunks = (size + kChunkValues - 1) / kChunkValues;
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      NormalEngine engine(seed, static_cast<uint64_t>(chunk));
      const int64_t first = chunk * kChunkValues;
      const int64_t last = std::min(size, first + kChunkValues);
      auto stretch = std::ranges::upper_bound(stretches, first, {}, &NormalStretch::end);
      for (int64_t i = first; i < last; ++i) {
        while (i >= stretch->end) ++stretch;
        values[static_cast<std::size_t>(i)] =
            static_cast<float>(stretch->deviation * engine.next());
      }
    }
  });
}

}  // namespace farstep
