#include "trainer/run/evaluate.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/data/tokens/shard_file.h"

using namespace farstep;

namespace {

// A validation set of 403 tokens: 50 windows of 8.
TokenDataset write_dataset(const TemporaryFolder& folder) {
  std::mt19937 generator(1);
  std::vector<int32_t> tokens(403);
  for (auto& token : tokens) token = static_cast<int32_t>(generator() % kSmallConfig.vocabulary);
  ShardWriter writer(folder / shard_name(kValidationSplit, 0), kSmallConfig.vocabulary, 2);
  writer.append(tokens);
  writer.finish();
  return TokenDataset(folder.path(), kValidationSplit);
}

}  // namespace

TEST_CASE("the shares of an evaluation add up to the whole whatever their number and batch") {
  const TemporaryFolder folder;
  const auto dataset = write_dataset(folder);
  auto model = small_model();
  for (const int64_t windows : {0, 1, 7, 50, 1000}) {
    const auto whole = evaluate(model, dataset, {.sequence_length = 8, .windows = windows});
    REQUIRE(whole.tokens == 8 * (windows == 0 ? 50 : std::min<int64_t>(windows, 50)));
    for (const int64_t num_shares : {1, 2, 3, 8}) {
      for (const int64_t batch : {1, 3, 64}) {
        EvaluationResult sum;
        for (int64_t share = 0; share < num_shares; ++share) {
          const auto part = evaluate(model, dataset,
                                     {.sequence_length = 8,
                                      .windows = windows,
                                      .share = share,
                                      .num_shares = num_shares,
                                      .batch = batch});
          sum.loss_sum += part.loss_sum;
          sum.tokens += part.tokens;
        }
        REQUIRE(sum.tokens == whole.tokens);
        REQUIRE(sum.loss_sum == Approx(whole.loss_sum).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("an evaluation is the model's own mean loss over the windows it takes") {
  const TemporaryFolder folder;
  const auto dataset = write_dataset(folder);
  auto model = small_model();
  // 5 of 50 windows: every tenth.
  double expected = 0;
  for (int64_t window = 0; window < 50; window += 10) {
    std::vector<int64_t> tokens(9);
    dataset.read(window * 8, tokens);
    const auto row = at::tensor(tokens).unsqueeze(0);
    expected += 8 * model.loss(row.narrow(1, 0, 8), row.narrow(1, 1, 8)).item<double>();
  }
  const auto result = evaluate(model, dataset, {.sequence_length = 8, .windows = 5, .batch = 2});
  REQUIRE(result.tokens == 40);
  REQUIRE(result.loss_sum == Approx(expected).epsilon(1e-5));
}

TEST_CASE("validation is due as often as it costs one percent of the training at most") {
  constexpr int64_t kRound = 564;
  for (const int64_t windows : {1, 2, 64, 1000}) {
    int64_t validations = 0;
    constexpr int64_t kRounds = 5000;
    for (int64_t round = 0; round < kRounds; ++round) {
      validations += is_validation_due(round * kRound, (round + 1) * kRound, windows);
    }
    const double cost = static_cast<double>(validations * windows) / 3;
    const double share = cost / static_cast<double>(kRounds * kRound);
    CAPTURE(windows);
    CHECK(share <= kValidationShare);
    // Not rarer than it must be: every round, if rounds are long.
    CHECK((validations == kRounds || share > 0.99 * kValidationShare));
  }
  CHECK(!is_validation_due(0, 0, 64));
  CHECK(is_validation_due(0, 1'000'000, 64));
  CHECK(windows_taken(0, 7) == 7);
  CHECK(windows_taken(3, 7) == 3);
  CHECK(windows_taken(9, 7) == 7);
}
