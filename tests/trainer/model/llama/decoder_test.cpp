#include "trainer/model/llama/decoder.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/Allocator.h>

#include "tests/support/catch.h"
#include "tests/trainer/model/first_gpu.h"
#include "tests/trainer/model/llama/random_model.h"
#include "tests/trainer/model/llama/small_model.h"

using namespace farstep;

namespace {

constexpr int64_t kLength = 23;

// Many queries a key head, one query a key head, one key head, and an output head of its own.
const ModelShape kShapes[] = {
    {"one key head", kSmallConfig, 1, kLength},
    {"groups, own head",
     {.vocabulary = 53, .hidden = 32, .intermediate = 40, .layers = 3, .heads = 4, .kv_heads = 2},
     1,
     kLength},
    {"no groups",
     {.vocabulary = 17,
      .hidden = 24,
      .intermediate = 9,
      .layers = 1,
      .heads = 3,
      .kv_heads = 3,
      .tied_embeddings = true},
     1,
     kLength}};

struct Tolerance {
  ComputeType compute;
  double relative;  // of the norm of the difference
};

// Reads the same tokens in pieces of several sizes. After each piece the logits must be those of
// the whole model at that position.
void compare_with_llama(const ModelShape& shape, at::Device device, const Tolerance& tolerance) {
  INFO(shape.name);
  Llama model(shape.config, device, tolerance.compute);
  randomise(model.parameters(), 3);
  const auto ids = random_tokens(shape.config, 1, kLength).narrow(1, 0, kLength).to(device);
  const at::NoGradGuard no_grad;
  const auto wanted = model.logits(ids)[0].cpu();
  Decoder decoder(model, tolerance.compute, kLength);
  for (const int64_t piece : {int64_t{1}, int64_t{2}, int64_t{7}, kLength}) {
    decoder.clear();
    while (decoder.length() < kLength) {
      const auto count = std::min(piece, kLength - decoder.length());
      const auto logits = decoder.read(ids[0].narrow(0, decoder.length(), count)).cpu();
      const auto expected = wanted[decoder.length() - 1];
      INFO("pieces of " << piece << ", after " << decoder.length() << " tokens");
      REQUIRE(logits.sizes() == expected.sizes());
      CHECK(norm_of(logits - expected) <= tolerance.relative * norm_of(expected));
    }
  }
}

// Counts the bytes that LibTorch's allocator gives to this thread and does not get back.
class LiveBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*memory*/, int64_t bytes, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    bytes_ += bytes;
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

}  // namespace

TEST_CASE("a decoder takes the bytes that are told of it") {
  constexpr int64_t kRotary = 256;  // bytes at most that the frequencies take
  for (const auto& shape : kShapes) {
    for (const auto compute : {ComputeType::kFP32, ComputeType::kBF16}) {
      Llama model(shape.config, at::kCPU, compute);
      const auto live = std::make_shared<LiveBytes>();
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
      const Decoder decoder(model, compute, kLength);
      const auto told = Decoder::bytes_for(shape.config, compute, kLength);
      INFO(shape.name << ", " << name_of(compute));
      CHECK(live->bytes() >= told);
      CHECK(live->bytes() <= told + kRotary);
    }
  }
}

TEST_CASE("reading piece by piece gives the logits of the whole model") {
  for (const auto& shape : kShapes) {
    compare_with_llama(shape, at::kCPU, {ComputeType::kFP32, 1e-5});
    compare_with_llama(shape, at::kCPU, {ComputeType::kBF16, 2e-2});
  }
}

TEST_CASE("reading piece by piece on a GPU gives the logits of the whole model") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  for (const auto& shape : kShapes) {
    compare_with_llama(shape, *gpu, {ComputeType::kFP32, 1e-4});
    compare_with_llama(shape, *gpu, {ComputeType::kBF16, 2e-2});
  }
}

TEST_CASE("a decoder reads no more than it has room for") {
  auto model = small_model();
  Decoder decoder(model, ComputeType::kFP32, 3);
  decoder.read(at::tensor({1, 2}));
  REQUIRE(decoder.length() == 2);
  REQUIRE_THROWS(decoder.read(at::tensor({1, 2})));
  decoder.read(at::tensor({3}));
  REQUIRE_THROWS(decoder.read(at::tensor({1})));
  decoder.clear();
  REQUIRE_NOTHROW(decoder.read(at::tensor({1, 2, 3})));
  REQUIRE_THROWS(decoder.read(at::empty({0}, at::kLong)));
  REQUIRE_THROWS(Decoder(model, ComputeType::kFP32, 0));
}
