#include "trainer/model/language/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"

using namespace farstep;

namespace {

constexpr int64_t kCapacity = 64;

std::vector<int64_t> continued(Llama& model, const std::vector<int64_t>& prompt,
                               const GenerateSettings& settings, int64_t capacity = kCapacity) {
  Decoder decoder(model, ComputeType::kFP32, capacity);
  std::vector<int64_t> ids;
  generate(decoder, prompt, settings, [&ids](int64_t id) {
    ids.push_back(id);
    return true;
  });
  return ids;
}

std::vector<int64_t> generated(Llama& model, const GenerateSettings& settings) {
  return continued(model, {1, 5, 9}, settings);
}

// The likeliest tokens by the whole model, which reads all that it may see for each of them.
std::vector<int64_t> likeliest(Llama& model, std::vector<int64_t> text, int64_t tokens,
                               int64_t capacity) {
  const at::NoGradGuard no_grad;
  const std::size_t given = text.size();
  auto seen = std::min<int64_t>(capacity, std::ssize(text));
  for (int64_t k = 0; k < tokens; ++k) {
    if (seen > capacity) seen = std::max<int64_t>(1, capacity / 2);
    const auto ids = at::from_blob(text.data() + text.size() - seen, {1, seen}, at::kLong);
    text.push_back(model.logits(ids)[0][-1].argmax().item<int64_t>());
    ++seen;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(given), text.end()};
}

}  // namespace

TEST_CASE("temperature 0 takes the token that the whole model finds likeliest, each time") {
  auto model = small_model();
  for (const int64_t capacity : {1, 2, 3, 7, 40, 64}) {
    INFO("capacity " << capacity);
    CHECK(continued(model, {1, 5, 9}, {.tokens = 40, .temperature = 0}, capacity) ==
          likeliest(model, {1, 5, 9}, 40, capacity));
  }
  CHECK(generated(model, {.tokens = 6, .temperature = 2, .top_k = 1}) ==
        likeliest(model, {1, 5, 9}, 6, kCapacity));
}

TEST_CASE("one seed gives one text and another seed another") {
  auto model = small_model();
  const GenerateSettings first{.tokens = 20, .temperature = 1.5, .top_k = 0, .seed = 1};
  auto second = first;
  second.seed = 2;
  REQUIRE(generated(model, first) == generated(model, first));
  REQUIRE(generated(model, first) != generated(model, second));
}

TEST_CASE("a small top_p keeps the likeliest tokens alone") {
  auto model = small_model();
  CHECK(generated(model, {.tokens = 6, .temperature = 2, .top_k = 0, .top_p = 1e-6}) ==
        likeliest(model, {1, 5, 9}, 6, kCapacity));
  // What can come first is the shortest run of likeliest tokens with half of the chances.
  const at::NoGradGuard no_grad;
  const auto chances = at::softmax(model.logits(at::tensor({1, 5, 9}).unsqueeze(0))[0][-1], 0);
  const auto [sorted, ids] = chances.sort(0, /*descending=*/true);
  std::set<int64_t> allowed;
  double sum = 0;
  for (int64_t k = 0; sum < 0.5; ++k) {
    allowed.insert(ids[k].item<int64_t>());
    sum += sorted[k].item<double>();
  }
  std::set<int64_t> drawn;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    drawn.insert(generated(
        model, {.tokens = 1, .temperature = 1, .top_k = 0, .top_p = 0.5, .seed = seed})[0]);
  }
  CHECK(drawn == allowed);
}

TEST_CASE("ids that the tokenizer does not have are not chosen") {
  auto model = small_model();
  for (const double temperature : {0.0, 3.0}) {
    for (const int64_t id : generated(
             model, {.tokens = 40, .temperature = temperature, .top_k = 0, .vocabulary = 4})) {
      CHECK(id < 4);
    }
  }
}

TEST_CASE("a text ends at its eos, after its last token, and when it is told to") {
  auto model = small_model();
  const auto ids = generated(model, {.tokens = 5, .temperature = 0});
  REQUIRE(generated(model, {.tokens = 5, .temperature = 0, .ends = {3, ids[0]}}).empty());
  REQUIRE(generated(model, {.tokens = 0}).empty());
  Decoder decoder(model, ComputeType::kFP32, kCapacity);
  int calls = 0;
  generate(decoder, {1, 5, 9}, {.tokens = 5}, [&calls](int64_t) { return ++calls < 2; });
  REQUIRE(calls == 2);
}

TEST_CASE("of a long prompt as much is seen as there is room for") {
  auto model = small_model();
  const GenerateSettings settings{.tokens = 4, .temperature = 0};
  REQUIRE(continued(model, {3, 3, 3, 5, 9}, settings, 2) == continued(model, {5, 9}, settings, 2));
}
