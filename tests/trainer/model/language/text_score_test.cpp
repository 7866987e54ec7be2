#include "trainer/model/language/text_score.h"

#include <ATen/core/grad_mode.h>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"

using namespace farstep;

namespace {

const std::vector<int64_t> kIds{1, 5, 9, 2, 7, 28, 0, 3, 3, 11, 4};

// The log-likelihood of the last id of each start of `ids`, one forward of the whole model each.
std::vector<double> one_by_one(Llama& model, const std::vector<int64_t>& ids) {
  const at::NoGradGuard no_grad;
  std::vector<double> chances{0};
  for (std::size_t k = 1; k < ids.size(); ++k) {
    const std::vector<int64_t> seen(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(k));
    const auto logits = model.logits(at::tensor(seen).unsqueeze(0))[0][-1].to(at::kDouble);
    chances.push_back(at::log_softmax(logits, 0)[ids[k]].item<double>());
  }
  return chances;
}

double sum_of(const std::vector<double>& chances, std::size_t first) {
  double sum = 0;
  for (std::size_t k = first; k < chances.size(); ++k) sum += chances[k];
  return sum;
}

std::vector<int64_t> part(const std::vector<int64_t>& ids, std::size_t first, std::size_t count) {
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("a text's loss is that of its tokens one by one") {
  auto model = small_model();
  const double whole = sum_of(one_by_one(model, kIds), 1);
  for (const int64_t batch : {1, 3}) {
    const auto score = score_text(model, kIds, 64, batch);
    CHECK(score.tokens == 10);
    CHECK(score.loss_sum == Approx(-whole).epsilon(1e-5));
  }
  CHECK(score_text(model, part(kIds, 0, 2), 64, 1).loss_sum ==
        Approx(-sum_of(one_by_one(model, part(kIds, 0, 2)), 1)).epsilon(1e-5));
}

TEST_CASE("a token of a long text sees its window alone") {
  auto model = small_model();
  // Of windows with 4 inputs: ids 0 to 4, 4 to 8, and 8 to 10.
  const double wanted = -sum_of(one_by_one(model, part(kIds, 0, 5)), 1) -
                        sum_of(one_by_one(model, part(kIds, 4, 5)), 1) -
                        sum_of(one_by_one(model, part(kIds, 8, 3)), 1);
  for (const int64_t batch : {1, 2, 5}) {
    INFO("batch " << batch);
    CHECK(score_text(model, kIds, 4, batch).loss_sum == Approx(wanted).epsilon(1e-5));
    CHECK(score_text(model, kIds, 4, batch).tokens == 10);
  }
}

TEST_CASE("an ending's score is the likelihood of its tokens after the context") {
  auto model = small_model();
  const ChoiceIds ids{.context = {1, 5, 9}, .endings = {{2}, {7, 28, 0, 3}, {5, 5}}};
  const auto scores = score_endings(model, ids, 64);
  REQUIRE(scores.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    auto text = ids.context;
    text.insert(text.end(), ids.endings[k].begin(), ids.endings[k].end());
    CHECK(scores[k] == Approx(sum_of(one_by_one(model, text), 3)).epsilon(1e-5));
  }
}

TEST_CASE("of a choice that is too long the newest tokens are read") {
  auto model = small_model();
  const auto cut = score_endings(model, {.context = {1, 5, 9, 2}, .endings = {{7, 28}, {3}}}, 3);
  CHECK(
      cut[0] ==
      Approx(score_endings(model, {.context = {9, 2}, .endings = {{7, 28}}}, 64)[0]).epsilon(1e-5));
  CHECK(
      cut[1] ==
      Approx(score_endings(model, {.context = {5, 9, 2}, .endings = {{3}}}, 64)[0]).epsilon(1e-5));
  // An ending longer than all that is read counts with the tokens that are targets.
  const auto longer = score_endings(model, {.context = {1}, .endings = {{7, 28, 0, 3}}}, 2);
  CHECK(longer[0] ==
        Approx(score_endings(model, {.context = {28}, .endings = {{0, 3}}}, 64)[0]).epsilon(1e-5));
}
