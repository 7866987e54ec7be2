#include "trainer/model/llama/rotary_table.h"

#include <cmath>
#include <numbers>

#include "tests/support/catch.h"
#include "tests/trainer/model/golden_case.h"
#include "trainer/model/shape/hf_config.h"

namespace farstep {

namespace {

constexpr const char* kPublished[] = {"smollm2_135m", "llama32_1b", "llama31_8b"};

LlamaConfig scaled_config() {
  return {.hidden = 128, .heads = 1, .rope_theta = 500000, .rope_scaling = RopeScaling{}};
}

}  // namespace

TEST_CASE("frequencies of published shapes are those of transformers") {
  for (const auto* name : kPublished) {
    INFO(name);
    const GoldenCase golden("hugging_face/rotary.safetensors", name);
    const auto config = from_hugging_face(golden.json("config"), name).shape;
    const auto wanted = golden.values("frequencies");
    const auto frequencies = rotary_frequencies(config, at::kCPU);
    REQUIRE(frequencies.sizes() == wanted.sizes());
    CHECK(at::allclose(frequencies, wanted, /*rtol=*/3e-7, /*atol=*/0));
  }
}

TEST_CASE("scaled frequencies follow the formula of Llama 3 in fp64") {
  const auto config = scaled_config();
  const auto& scaling = *config.rope_scaling;
  const auto frequencies = rotary_frequencies(config, at::kCPU).to(at::kDouble);
  int divided = 0, kept = 0, between = 0;
  for (int64_t i = 0; i < config.head_size() / 2; ++i) {
    const double plain = std::pow(
        config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_size()));
    // Turns of this pair of values in the original length.
    const double turns = static_cast<double>(scaling.original_max_position_embeddings) * plain /
                         (2 * std::numbers::pi);
    double wanted = plain;
    if (turns < scaling.low_freq_factor) {
      wanted = plain / scaling.factor;
      ++divided;
    } else if (turns < scaling.high_freq_factor) {
      const double share =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      wanted = (1 - share) * plain / scaling.factor + share * plain;
      ++between;
    } else {
      ++kept;
    }
    CHECK(frequencies[i].item<double>() == Approx(wanted).epsilon(1e-6));
  }
  CHECK(divided > 0);
  CHECK(between > 0);
  CHECK(kept > 0);
}

TEST_CASE("scaling by 1 changes nothing but the last bit") {
  auto config = scaled_config();
  config.rope_scaling->factor = 1;
  auto plain = config;
  plain.rope_scaling.reset();
  const auto scaled = rotary_frequencies(config, at::kCPU);
  CHECK(at::allclose(scaled, rotary_frequencies(plain, at::kCPU), 1.2e-7, 0));
}

TEST_CASE("tables have the cosine and the sine of position times frequency") {
  const auto frequencies = rotary_frequencies(scaled_config(), at::kCPU);
  RotaryTable table(frequencies);
  const auto [cosines, sines] = table.tables(300);
  const auto angles = at::outer(at::arange(300, at::kDouble), frequencies.to(at::kDouble));
  CHECK(at::allclose(cosines.to(at::kDouble), angles.cos(), 0, 3e-5));
  CHECK(at::allclose(sines.to(at::kDouble), angles.sin(), 0, 3e-5));
  CHECK(table.positions() == 512);
}

}  // namespace farstep
