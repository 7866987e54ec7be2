// How fast codecs are on one core, and how much they lose.
//
//   codec_bench [REPEATS] [--instructions SET]
//
// Speeds are GB of fp32 a second of processor time over 64 MiB, the best of REPEATS (7); "both" is
// encoding and decoding together. The error is |x - decoded| / |x| on Gaussian values, and on
// heavy-tailed ones (Gaussian * exp(Gaussian)).
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "outer_optimizer/codec/block_codecs.h"
#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/codec/float_codecs.h"
#include "outer_optimizer/codec/top_k_codec.h"
#include "tests/bench/instructions_option.h"

using namespace farstep;

namespace {

constexpr int64_t kValues = 16 << 20;

std::vector<float> random_values(bool heavy_tails) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kValues);
  for (float& value : values) {
    value = normal(random) * (heavy_tails ? std::exp(normal(random)) : 1.0F);
  }
  return values;
}

// Processor time of this thread: other programs disturb it less than the time on the wall.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Action>
double best_seconds(int repeats, const Action& action) {
  double best = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double began = processor_seconds();
    action();
    best = std::min(best, processor_seconds() - began);
  }
  return best;
}

double relative_error(const outer_optimizer::Codec& codec, const std::vector<float>& values,
                      std::vector<std::byte>& bytes, std::vector<float>& decoded) {
  codec.encode(values, bytes);
  codec.decode(bytes, decoded);
  double error = 0;
  double norm = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    error += std::pow(double{values[k]} - decoded[k], 2);
    norm += std::pow(double{values[k]}, 2);
  }
  return std::sqrt(error / norm);
}

void measure(const std::string& label, const outer_optimizer::Codec& codec, int repeats,
             const std::vector<float>& gaussian, const std::vector<float>& heavy) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec.encoded_bytes(kValues)));
  std::vector<float> decoded(gaussian.size());
  const double encode = best_seconds(repeats, [&] { codec.encode(gaussian, bytes); });
  const double decode = best_seconds(repeats, [&] { codec.decode(bytes, decoded); });
  const double add = best_seconds(repeats, [&] { codec.add_decoded(bytes, 0.25F, decoded); });
  constexpr double kGigabytes = kValues * sizeof(float) / 1e9;
  fmt::print("{:12} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:8.3f} {:10.2g} {:10.2g}\n", label,
             kGigabytes / encode, kGigabytes / decode, kGigabytes / add,
             kGigabytes / (encode + decode), 8.0 * static_cast<double>(bytes.size()) / kValues,
             relative_error(codec, gaussian, bytes, decoded),
             relative_error(codec, heavy, bytes, decoded));
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 7;
  CLI::App app("Measures codecs on one core");
  app.add_option("repeats", repeats)->check(CLI::PositiveNumber);
  add_instructions_option(app);
  CLI11_PARSE(app, argc, argv);
  const auto gaussian = random_values(false);
  const auto heavy = random_values(true);
  fmt::print("{:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}\n", "codec", "encode", "decode",
             "add", "both", "bits", "gaussian", "heavy");
  measure("fp32", outer_optimizer::Fp32Codec(), repeats, gaussian, heavy);
  measure("fp16", outer_optimizer::Fp16Codec(), repeats, gaussian, heavy);
  measure("bf16", outer_optimizer::Bf16Codec(), repeats, gaussian, heavy);
  for (const int64_t block : {256, 64}) {
    measure(fmt::format("int8/{}", block), outer_optimizer::Int8Codec(block), repeats, gaussian,
            heavy);
  }
  for (const int64_t block : {512, 160, 32}) {
    measure(fmt::format("int4/{}", block), outer_optimizer::Int4Codec(block), repeats, gaussian,
            heavy);
  }
  for (const int64_t block : {512, 128, 32}) {
    measure(fmt::format("int2/{}", block), outer_optimizer::Int2Codec(block), repeats, gaussian,
            heavy);
  }
  for (const double fraction : {0.1, 0.01}) {
    measure(fmt::format("top_k {}", fraction), outer_optimizer::TopKCodec(fraction), repeats,
            gaussian, heavy);
  }
  return 0;
}
