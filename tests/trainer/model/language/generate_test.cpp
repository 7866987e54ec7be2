#include "trainer/model/language/generate.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"

using namespace farstep;

namespace {

std::vector<int64_t> generated(Llama& model, const GenerateSettings& settings) {
  std::vector<int64_t> ids;
  generate(model, {1, 5, 9}, settings, [&ids](int64_t id) { ids.push_back(id); });
  return ids;
}

}  // namespace

TEST_CASE("temperature 0 takes the likeliest token each time") {
  auto model = small_model();
  const auto ids = generated(model, {.tokens = 6, .temperature = 0});
  std::vector<int64_t> text{1, 5, 9};
  for (const int64_t id : ids) {
    const auto logits = model.logits(at::tensor(text).unsqueeze(0))[0][-1];
    REQUIRE(id == logits.argmax().item<int64_t>());
    text.push_back(id);
  }
  REQUIRE(ids.size() == 6);
  REQUIRE(generated(model, {.tokens = 6, .temperature = 2, .top_k = 1}) == ids);
}

TEST_CASE("one seed gives one text and another seed another") {
  auto model = small_model();
  const GenerateSettings first{.tokens = 20, .temperature = 1.5, .top_k = 0, .seed = 1};
  auto second = first;
  second.seed = 2;
  REQUIRE(generated(model, first) == generated(model, first));
  REQUIRE(generated(model, first) != generated(model, second));
}

TEST_CASE("a text ends at its eos and after its last token") {
  auto model = small_model();
  const auto ids = generated(model, {.tokens = 5, .temperature = 0});
  REQUIRE(generated(model, {.tokens = 5, .temperature = 0, .eos = ids[0]}).empty());
  REQUIRE(generated(model, {.tokens = 0}).empty());
}

TEST_CASE("no more than the context is looked at") {
  auto model = small_model();
  std::vector<int64_t> from_long, from_short;
  const GenerateSettings settings{.tokens = 4, .context = 2, .temperature = 0};
  generate(model, {3, 3, 3, 5, 9}, settings, [&](int64_t id) { from_long.push_back(id); });
  generate(model, {5, 9}, settings, [&](int64_t id) { from_short.push_back(id); });
  REQUIRE(from_long == from_short);
}
