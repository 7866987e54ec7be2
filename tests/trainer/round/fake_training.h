// Fakes the inner steps of a site: a plain vector, steps that take a given time on the site's own
// clock, and a record of what they trained on.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/trainer/strategy/vector_sites.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/data/example_form.h"
#include "trainer/data/examples.h"
#include "trainer/site/inner_training.h"

namespace farstep {

// Examples that are their own numbers, counted on from epoch to epoch.
class NumberedExamples : public Examples {
 public:
  static constexpr int64_t kSize = 97;

  static ExampleForm form() {
    return {.parts = {{.dtype = DType::kI64, .shape = {}}}, .text = "numbers"};
  }
  static std::vector<int64_t> numbers_of(const BatchView& batch) {
    std::vector<int64_t> numbers(static_cast<std::size_t>(batch.examples));
    std::memcpy(numbers.data(), batch.parts.front().bytes.data(), batch.parts.front().bytes.size());
    return numbers;
  }

  int64_t size() const override { return kSize; }
  Batch read(std::span<const int64_t> numbers) const override {
    if (unreadable && std::ranges::count(numbers, *unreadable) > 0) throw DataError("unreadable");
    auto blank = blank_batch(form(), std::ssize(numbers));
    std::ranges::copy(std::as_bytes(numbers), blank.parts.front().begin());
    return blank.batch;
  }
  Batch draw(std::span<const Draw> draws) const override {
    std::vector<int64_t> numbers;
    for (const auto& draw : draws) numbers.push_back(draw.epoch * kSize + draw.number);
    return read(numbers);
  }

  std::optional<int64_t> unreadable;
};

// The sequences of a step that a site trained on.
struct TrainedStep {
  int64_t round = 0, step = 0;
  std::vector<int64_t> sequences;  // numbers in the order of all sites; of a source: its examples'
  bool operator==(const TrainedStep&) const = default;
};

// Inner steps of a plain vector that take a given time.
class FakeTraining : public InnerTraining {
 public:
  FakeTraining(std::vector<float> start, int site, double step_seconds, FakeClock& clock)
      : values(std::move(start)), step_seconds(step_seconds), site_(site), clock_(clock) {}

  void begin(const StepDraws& draws) override {
    range_ = draws.own().range;
    next_sequence_ = draws.own().first;
    if (source) source->begin(draws);
  }
  std::optional<StepDone> step(const StepOrder& order, SiteReduction* gradients,
                               const std::stop_token& stop) override {
    if (before_step) before_step(order);
    if (is_stopped_within) throw_if_stopped(stop);
    if (sequence_seconds > 0) step_seconds = sequence_seconds * static_cast<double>(order.batch);
    TrainedStep trained{.round = order.round, .step = order.step, .sequences = {}};
    double waited_seconds = 0;
    if (source) {
      if (source->comes_from_peer()) waited_seconds = batch_seconds;
      clock_.advance(waited_seconds);
      trained.sequences = NumberedExamples::numbers_of(source->next().view);
      FARSTEP_CHECK(std::ssize(trained.sequences) == order.batch, "another batch");
    }
    for (int64_t k = 0; !source && k < order.batch; ++k) {
      trained.sequences.push_back(range_.pool.at(range_.offset + next_sequence_ + k));
    }
    if (gradients != nullptr) {
      step_across(trained.sequences, *gradients);
    } else {
      wander(values, site_);
    }
    clock_.advance(step_seconds);
    next_sequence_ += order.batch;
    steps.push_back(std::move(trained));
    StepDone done{.event = {.round = order.round,
                            .step = order.step,
                            .start = clock_.unix_seconds() - step_seconds,
                            .seconds = step_seconds,
                            .loss = static_cast<double>(order.step),
                            .gradient_norm = 1,
                            .learning_rate = order.progress * order.learning_rate_factor,
                            .tokens = order.batch}};
    done.waited_seconds = waited_seconds;
    if (order.measures_noise && noise_of) done.noise = noise_of(order);
    if (order.batch == 0) return std::nullopt;  // it serves alone
    if (!is_late) return done;
    return std::exchange(under_way_, done);
  }
  bool is_step_under_way() const override { return under_way_.has_value(); }
  std::optional<StepDone> finish() override { return std::exchange(under_way_, std::nullopt); }
  int64_t begin_anew() override {
    ++times_anew;
    return 0;
  }
  double warm_up_factor() const override { return 1; }
  LocalTheta& theta() override { return theta_; }
  std::span<float> gradients() override {
    gradient_.resize(values.size());
    return gradient_;
  }

  // The gradient of one sequence: it leads every sequence and every value elsewhere.
  static double gradient(double value, std::size_t k, int64_t sequence) {
    return std::sin(value * static_cast<double>(sequence % 7 + 2) + static_cast<double>(k));
  }
  static constexpr float kRate = 0.1F;  // of the plain descent by gradients across sites

  std::vector<float> values;
  double step_seconds;
  double sequence_seconds = 0;     // above 0: a step takes so long for each of its sequences
  bool is_late = false;            // a step is done when the next one is asked for
  bool is_stopped_within = false;  // else a step that has begun ends
  std::function<void(const StepOrder&)> before_step;
  std::function<heterogeneity::GradientNoise(const StepOrder&)>
      noise_of;  // unless empty, of a measured step
  std::vector<TrainedStep> steps;
  int64_t times_anew = 0;               // that it began anew
  std::unique_ptr<BatchSource> source;  // unless null, of the batches
  double batch_seconds = 0;             // that one of another site is waited for

 private:
  // Descends by the mean gradient of all sites, which is made from the end, as in backward. Without
  // sequences it is not a number, which must reach nobody.
  void step_across(const std::vector<int64_t>& sequences, SiteReduction& across) {
    across.begin_step();
    for (std::size_t k = values.size(); k-- > 0;) {
      double sum = 0;
      for (const auto sequence : sequences) sum += gradient(values[k], k, sequence);
      gradient_[k] = static_cast<float>(sum / static_cast<double>(sequences.size()));
      across.ready(0, static_cast<int64_t>(k), static_cast<int64_t>(k) + 1);
    }
    FARSTEP_CHECK(across.finish(0), "the step was abandoned");
    for (std::size_t k = 0; k < values.size(); ++k) values[k] -= kRate * gradient_[k];
  }

  const int site_;
  FakeClock& clock_;
  VectorTheta theta_{values};
  std::vector<float> gradient_;
  RoundRange range_;
  int64_t next_sequence_ = 0;  // of the range
  std::optional<StepDone> under_way_;
};

}  // namespace farstep
