// A step is waited for where the host needs its end: to sleep for an emulated device, to balance
// devices, to add up gradients of several sites. Only a single real GPU runs a step ahead of the
// host.
#include "trainer/run/model_training.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/site/emulated_backward.h"

namespace farstep {

namespace {

StepDone done(StepEvent event, const StepResult& result) {
  event.loss = result.loss;
  event.gradient_norm = result.gradient_norm;
  event.learning_rate = result.learning_rate;
  event.tokens = result.tokens;
  return {.event = std::move(event), .noise = result.noise};
}

StepTerms terms_of(const StepOrder& order) {
  return {order.rate_share, order.learning_rate_factor, order.measures_noise, order.progress};
}

}  // namespace

ModelTraining::ModelTraining(InnerStep& inner, HostMirror& mirror,
                             std::unique_ptr<BatchSource> source, std::vector<EmulatedSpeed> speeds,
                             std::vector<std::optional<double>> sequence_seconds, Clock& clock)
    : inner_(inner),
      theta_(mirror),
      source_(std::move(source)),
      speeds_(std::move(speeds)),
      balance_(std::move(sequence_seconds)),
      clock_(clock) {}

void ModelTraining::begin(const StepDraws& draws) {
  unused_.reset();
  source_->begin(draws);
}

bool ModelTraining::is_emulated() const {
  return std::ranges::any_of(speeds_, &EmulatedSpeed::is_emulated);
}

std::optional<StepDone> ModelTraining::step(const StepOrder& order, SiteReduction* gradients,
                                            const std::stop_token& stop) {
  StepEvent event{.round = order.round, .step = order.step};
  const double asked = clock_.now_seconds();
  auto batch = unused_ ? *std::exchange(unused_, std::nullopt) : source_->next();
  const double waited_seconds = clock_.now_seconds() - asked;
  const bool waited_for_peer = source_->comes_from_peer();
  if (!waited_for_peer) event.data_seconds = waited_seconds;
  event.start = clock_.unix_seconds();
  try {
    auto done = train_on(batch.view, order, std::move(event), gradients, stop);
    // Sites whose batches are sent add up gradients in each step, so no step of theirs is late.
    if (done && waited_for_peer) done->waited_seconds = waited_seconds;
    return done;
  } catch (...) {
    unused_ = std::move(batch);
    throw;
  }
}

std::optional<StepDone> ModelTraining::train_on(const BatchView& batch, const StepOrder& order,
                                                StepEvent event, SiteReduction* gradients,
                                                const std::stop_token& stop) {
  // An emulated length is slept, a balance needs the devices' times, and gradients of several sites
  // are added up. Each of these waits for the step.
  if (!inner_.may_be_late() || is_emulated() || gradients) {
    return step_at_once(batch, order, std::move(event), gradients, stop);
  }
  const auto before =
      inner_.start(batch, balance_.shares(order.batch), order.micro_batch, terms_of(order));
  std::optional<StepDone> result;
  if (before) result = done_late(*before);
  under_way_ = std::move(event);
  return result;
}

std::optional<StepDone> ModelTraining::finish() {
  const auto result = inner_.finish();
  if (!result) return std::nullopt;
  auto late = done_late(*result);
  under_way_.reset();
  return late;
}

StepDone ModelTraining::step_at_once(const BatchView& batch, const StepOrder& order,
                                     StepEvent event, SiteReduction* gradients,
                                     const std::stop_token& stop) {
  const double began = clock_.now_seconds();
  const auto& shares = balance_.shares(order.batch);
  double slept_seconds = 0;
  const auto result = run(batch, shares, order, gradients, slept_seconds, stop);
  own_seconds_ = clock_.now_seconds() - began - slept_seconds - result.across_seconds;
  const auto device_seconds =
      emulate_speeds(began + result.across_seconds, shares, result.device_seconds);
  balance_.observe(device_seconds);
  // Waiting for other sites is recorded as such, and says nothing of this site's speed.
  event.seconds = clock_.now_seconds() - began - result.across_seconds;
  if (device_seconds.size() > 1) event.device_seconds = device_seconds;
  auto step = done(std::move(event), result);
  // Without the sum a site knows the norm of its own gradient alone.
  if (gradients && gradients->coefficient() == 0) step.event.gradient_norm.reset();
  if (result.held_seconds > 0 && !is_emulated()) {  // else the emulated length hides the wait
    step.event.seconds = std::max(0.0, step.event.seconds - result.held_seconds);
    step.held_seconds = result.held_seconds;
  }
  return step;
}

StepResult ModelTraining::run(const BatchView& batch, std::span<const int64_t> shares,
                              const StepOrder& order, SiteReduction* gradients,
                              double& slept_seconds, const std::stop_token& stop) {
  if (gradients == nullptr) {
    return inner_.run(batch, shares, order.micro_batch, terms_of(order), stop);
  }
  if (!is_emulated()) {
    return inner_.run_across(batch, shares, order.micro_batch, terms_of(order), *gradients, stop);
  }
  EmulatedBackward emulated(*gradients, clock_, std::ssize(inner_.host_gradients()),
                            expected_seconds(shares));
  auto result =
      inner_.run_across(batch, shares, order.micro_batch, terms_of(order), emulated, stop);
  slept_seconds = emulated.slept_seconds();
  return result;
}

double ModelTraining::expected_seconds(std::span<const int64_t> shares) const {
  double slowest = 0;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    slowest = std::max(slowest, speeds_[device].next_step_lasts(own_seconds_, shares[device]));
  }
  return slowest;
}

// An emulated device sleeps as long as its speed asks, so that sites of one machine behave as if
// unequal.
std::vector<double> ModelTraining::emulate_speeds(double began, std::span<const int64_t> shares,
                                                  std::span<const double> device_seconds) {
  const double slowest = *std::ranges::max_element(device_seconds);
  // The time after the devices' own: the sum of gradients and the update, which end together.
  const double common_seconds = own_seconds_ - slowest;
  std::vector<double> lasted;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    lasted.push_back(
        speeds_[device].step_lasts(device_seconds[device] + common_seconds, shares[device]));
  }
  clock_.sleep_until(began + *std::ranges::max_element(lasted));
  return lasted;
}

StepDone ModelTraining::done_late(const StepResult& result) {
  // The GPU's own clock measures a step that the host did not wait for.
  auto event = *under_way_;
  event.seconds = result.device_seconds.front();
  // The GPU began when it was done with the step before, which may be after the host asked.
  event.start = std::max(event.start, clock_.unix_seconds() - event.seconds);
  return done(std::move(event), result);
}

}  // namespace farstep
