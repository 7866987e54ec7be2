#include "trainer/validation/validation_history.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"
#include "trainer/config/json_fields.h"
#include "trainer/config/strict_json.h"

namespace farstep {
namespace {

using heterogeneity::PartialValidation;

// A validation by two sites, whose losses add up to that of the whole.
std::vector<PartialValidation> parts_of(int64_t round, double loss) {
  return {{.round = round, .loss_sum = 30 * (loss + 0.02), .targets = 30},
          {.round = round, .loss_sum = 60 * (loss - 0.01), .targets = 60}};
}

ValidationHistory history_of(OnRise on_rise, const std::vector<double>& losses) {
  ValidationHistory history{.on_rise = on_rise};
  int64_t round = 0;
  for (const double loss : losses) {
    CHECK_FALSE(history.add(parts_of(round, loss)));
    ++round;
  }
  return history;
}

TEST_CASE("a rise is half a nat and six standard deviations above the best") {
  const std::vector<double> quiet{4.00, 3.99, 3.98, 3.97};
  auto history = history_of(OnRise::kGoBack, quiet);
  CHECK_FALSE(history.add(parts_of(4, 3.97 + 0.49)));
  history = history_of(OnRise::kGoBack, quiet);
  const auto rise = history.add(parts_of(4, 3.97 + 0.53));
  REQUIRE(rise);
  CHECK(rise->best.round == 3);
  CHECK(rise->best.loss == Approx(3.97));
  CHECK(rise->newest.round == 4);
  CHECK(rise->newest.loss == Approx(4.5));
  CHECK_FALSE(rise->is_second);
  // The fast fall of a run's begin is no measure of noise, and asks for a larger rise.
  const std::vector<double> falling{10, 8, 6.5, 5.5};
  double mean = 0, squares = 0;
  for (const double loss : falling) mean += loss / 4;
  for (const double loss : falling) squares += (loss - mean) * (loss - mean) / 4;
  const double limit = 5.5 + 6 * std::sqrt(squares);
  for (const double beyond : {-0.05, 0.05}) {
    history = history_of(OnRise::kGoBack, falling);
    CHECK(history.add(parts_of(4, limit + beyond)).has_value() == (beyond > 0));
  }
  // The first loss has nothing to be compared with, the second has.
  history = history_of(OnRise::kStop, {4});
  CHECK(history.add(parts_of(1, 4.6)));
}

TEST_CASE("a rise counts if more than half of the sites see it") {
  auto history = history_of(OnRise::kGoBack, {4, 4, 4});
  CHECK_FALSE(history.add(std::vector<PartialValidation>{{3, 1e30, 10}, {3, 40, 10}}));
  history = history_of(OnRise::kGoBack, {4, 4, 4});
  CHECK_FALSE(history.add(std::vector<PartialValidation>{{3, 1e30, 10}, {3, 40, 10}, {3, 40, 10}}));
  history = history_of(OnRise::kGoBack, {4, 4, 4});
  CHECK(history.add(std::vector<PartialValidation>{{3, 70, 10}, {3, 40, 10}, {3, 70, 10}}));
  history = history_of(OnRise::kGoBack, {4, 4, 4});
  CHECK(history.add(std::vector<PartialValidation>{{3, 70, 10}}));
}

TEST_CASE("a validation is judged once, by the parts of the newest round that have targets") {
  ValidationHistory history{.on_rise = OnRise::kGoBack};
  CHECK_FALSE(history.add({}));
  CHECK(history.losses.empty());
  CHECK_FALSE(history.add(std::vector<PartialValidation>{{2, 0, 0}}));
  CHECK(history.losses.empty());
  const std::vector<PartialValidation> mixed{{4, 80, 20}, {2, 1000, 10}, {4, 0, 0}};
  CHECK_FALSE(history.add(mixed));
  REQUIRE(history.losses.size() == 1);
  CHECK(history.losses[0] == ValidationLoss{.round = 4, .loss = 4});
  const auto before = history;
  CHECK_FALSE(history.add(mixed));
  CHECK_FALSE(history.add(parts_of(3, 1000)));
  CHECK(history == before);
}

TEST_CASE("the best is of the last eight, and of those that did not rise") {
  const std::vector<double> losses{3.6, 4, 4, 4, 4, 4, 4, 4};
  auto history = history_of(OnRise::kWarn, losses);
  CHECK(history.losses.size() == ValidationHistory::kMostLosses);
  CHECK_FALSE(history.add(parts_of(8, 4)));  // takes the place of the first
  CHECK(history.losses.size() == ValidationHistory::kMostLosses);
  CHECK(history.losses.front().round == 1);
  CHECK(history.add(parts_of(9, 5)));
  CHECK(history.losses.back().round == 9);  // nothing was undone, so it is the run's state

  history = history_of(OnRise::kGoBack, {4, 4});
  CHECK(history.add(parts_of(2, 5)));
  CHECK(history.losses.back().round == 1);
}

TEST_CASE("a second rise within eight validations is one") {
  for (const int64_t between : {0, 3, 7, 8}) {
    auto history = history_of(OnRise::kGoBack, {4, 4});
    REQUIRE(history.add(parts_of(2, 5)));
    int64_t round = 3;
    for (; round < 3 + between; ++round) CHECK_FALSE(history.add(parts_of(round, 4)));
    const auto rise = history.add(parts_of(round, 5));
    REQUIRE(rise);
    CHECK(rise->is_second == (between < 8));
  }
}

TEST_CASE("the run goes back to a checkpoint from before the rise") {
  ValidationHistory history{.on_rise = OnRise::kGoBack};
  CHECK_FALSE(history.round_to_go_back_to(1));
  CHECK_FALSE(history.add(parts_of(0, 4)));
  CHECK(history.round_to_go_back_to(3) == 0);
  CHECK_FALSE(history.add(parts_of(7, 4)));
  CHECK(history.round_to_go_back_to(1) == 7);
  CHECK(history.round_to_go_back_to(3) == 6);
  CHECK(history.add(parts_of(8, 5)));
  CHECK(history.round_to_go_back_to(3) == 6);
  history.on_rise = OnRise::kWarn;
  CHECK_FALSE(history.round_to_go_back_to(1));
}

TEST_CASE("ordinary validations are no rise") {
  std::mt19937 generator(5);
  std::normal_distribution<double> noise(0, 0.1);
  int64_t rises = 0;
  for (int run = 0; run < 200; ++run) {
    ValidationHistory history{.on_rise = OnRise::kGoBack};
    for (int64_t round = 0; round < 200; ++round) {
      const double loss = 3 + 7 / (1 + 0.1 * static_cast<double>(round)) + noise(generator);
      rises += history.add(parts_of(round, loss)).has_value();
    }
  }
  CHECK(rises == 0);
}

TEST_CASE("a history is read back as it was written") {
  auto history = history_of(OnRise::kGoBack, {4, 3.5});
  CHECK(history.add(parts_of(2, 9)));
  CHECK(read_untrusted<ValidationHistory>(to_json(history).dump(), "a history") == history);
}

}  // namespace
}  // namespace farstep
