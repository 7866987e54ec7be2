#include "trainer/inner/inner_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/out_of_memory.h"
#include "trainer/inner/gradient_norm.h"
#include "trainer/inner/graph_recorder.h"
#include "trainer/inner/lr_schedule.h"
#include "trainer/inner/make_reduction.h"
#include "trainer/model/device.h"

namespace farstep {

namespace {

void require_finite(const StepResult& result, double progress) {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  throw InternalError(fmt::format(
      "training diverged at {:.4f} of the run: loss {}, gradient norm {}, learning rate {}; the "
      "step was not taken. A lower inner.peak_learning_rate or a longer warm-up usually helps",
      progress, result.loss, result.gradient_norm, result.learning_rate));
}

// Null where the device does each step at once.
std::unique_ptr<GpuStep> gpu_step(TrainableModel& model, Optimizer& optimizer,
                                  const InnerConfig& config) {
  auto* const update = optimizer.deferred();
  if (update == nullptr || !model.recordable_memory()) return nullptr;
  const auto device = model.parameters().values().device();
  return make_gpu_step(model, *update, config.clip_norm,
                       config.cuda_graph ? make_graph_recorder(device) : nullptr);
}

}  // namespace

struct InnerStep::Step {
  const TokenBatch& batch;
  std::vector<Share> shares;
  double learning_rate = 0;
  std::vector<ShareResult> done = {};
  std::vector<double> norms = {};  // of the sum, by those who update

  double loss() const {
    return std::accumulate(done.begin(), done.end(), 0.0,
                           [](double sum, const ShareResult& one) { return sum + one.loss; });
  }
  StepResult result() const {
    StepResult result{.loss = loss(),
                      .gradient_norm = norms.front(),
                      .learning_rate = learning_rate,
                      .tokens = batch.sequences * batch.length,
                      .device_seconds = {}};
    for (const auto& one : done) result.device_seconds.push_back(one.seconds);
    return result;
  }
};

InnerStep::InnerStep(TrainableModel& model, const InnerConfig& config,
                     std::vector<std::unique_ptr<Replica>> replicas)
    : config_(config),
      devices_(model, std::move(replicas)),
      reduction_(make_reduction(config, devices_)),
      optimizers_(reduction_ ? devices_.size() : 1),
      followed_(devices_.size(), -1) {
  devices_.run_on_all([this](std::size_t device) {
    if (device >= optimizers_.size()) return;
    optimizers_[device] = make_optimizer(config_, devices_.model(device).parameters());
  });
  on_gpu_ = num_devices() == 1 ? gpu_step(model, *optimizers_.front(), config_) : nullptr;
}

StepResult InnerStep::run(const TokenBatch& batch, int64_t micro_batch, double progress) {
  std::vector<int64_t> shares(num_devices());
  shares.front() = batch.sequences;
  return run(batch, shares, micro_batch, progress);
}

StepResult InnerStep::run(const TokenBatch& batch, std::span<const int64_t> shares,
                          int64_t micro_batch, double progress) {
  FARSTEP_CHECK(!under_way_, "a step is under way");
  auto result = start(batch, shares, micro_batch, progress);
  return result ? *std::move(result) : *finish();
}

std::optional<StepResult> InnerStep::start(const TokenBatch& batch, std::span<const int64_t> shares,
                                           int64_t micro_batch, double progress) {
  auto step = make_step(batch, shares, micro_batch, progress);
  if (!on_gpu_) return run_at_once(std::move(step), progress);
  const StepUnderWay started{.progress = progress, .result = step.result()};
  try {
    on_gpu_->start(batch, micro_batch, step.learning_rate);
  } catch (...) {
    rethrow(0, std::current_exception(), step);
  }
  auto before = std::exchange(under_way_, started);
  if (!before) return std::nullopt;
  return settle(*std::move(before));
}

std::optional<StepResult> InnerStep::finish() {
  if (!under_way_) return std::nullopt;
  return settle(*std::exchange(under_way_, std::nullopt));
}

StepResult InnerStep::settle(StepUnderWay step) {
  const auto [update, seconds] = on_gpu_->finish();
  if (!update.taken) {
    under_way_.reset();
    while (on_gpu_->num_under_way() > 0) on_gpu_->finish();
  }
  auto& result = step.result;
  result.loss = update.loss;
  result.gradient_norm = update.gradient_norm;
  result.device_seconds = {seconds};
  require_finite(result, step.progress);
  FARSTEP_CHECK(update.taken, "a step with finite numbers was not taken");
  return std::move(result);
}

InnerStep::Step InnerStep::make_step(const TokenBatch& batch, std::span<const int64_t> shares,
                                     int64_t micro_batch, double progress) const {
  FARSTEP_CHECK(micro_batch > 0, "a micro-batch has sequences");
  FARSTEP_CHECK(shares.size() == num_devices() &&
                    std::accumulate(shares.begin(), shares.end(), int64_t{0}) == batch.sequences,
                "{} shares of {} sequences for {} devices", shares.size(), batch.sequences,
                num_devices());
  FARSTEP_CHECK(batch.sequences * batch.length > 0, "a batch has tokens");
  Step step{.batch = batch, .shares = {}, .learning_rate = learning_rate(config_, progress)};
  step.done.resize(num_devices());
  step.norms.resize(num_devices());
  for (int64_t first = 0; const int64_t sequences : shares) {
    step.shares.push_back({first, sequences, micro_batch});
    first += sequences;
  }
  return step;
}

StepResult InnerStep::run_at_once(Step step, double progress) {
  const auto& values = devices_.model(0).parameters().values();
  const int64_t version = values._version();
  // Others' threads read them, by streams of their own.
  const bool all_follow =
      std::all_of(followed_.begin() + 1, followed_.end(), [=](int64_t v) { return v == version; });
  if (!all_follow) synchronize(values.device());
  if (reduction_) reduction_->begin_step();
  const auto thrown = devices_.try_on_all([&](std::size_t device) {
    try {
      if (device > 0) follow_first(device, version);
      run_device(device, step);
    } catch (...) {
      if (reduction_) reduction_->abandon();
      throw;
    }
  });
  for (std::size_t device = 0; device < thrown.size(); ++device) {
    if (thrown[device]) rethrow(device, thrown[device], step);
  }
  if (reduction_) {
    followed_.assign(num_devices(), values._version());
  } else {
    add_to_first();
    update(0, step);
  }
  auto result = step.result();
  require_finite(result, progress);
  return result;
}

void InnerStep::run_device(std::size_t device, Step& step) {
  auto& model = devices_.model(device);
  auto& done = step.done[device];
  if (!reduction_) {
    done = share_gradients(model, step.batch, step.shares[device]);
    return;
  }
  done = share_gradients(model, step.batch, step.shares[device], [&](int64_t begin, int64_t end) {
    reduction_->ready(device, begin, end);
  });
  if (reduction_->finish(device)) update(device, step);
}

void InnerStep::follow_first(std::size_t device, int64_t version) {
  if (followed_[device] == version) return;
  auto values = devices_.model(device).parameters().values();
  values.copy_(devices_.model(0).parameters().values());
  followed_[device] = version;
}

void InnerStep::add_to_first() {
  auto sum = devices_.model(0).parameters().gradients();
  for (std::size_t device = 1; device < num_devices(); ++device) {
    sum.add_(devices_.model(device).parameters().gradients().to(sum.device()));
  }
}

void InnerStep::update(std::size_t device, Step& step) {
  step.norms[device] =
      std::isfinite(step.loss())
          ? optimizers_[device]->clip_and_update(step.learning_rate, config_.clip_norm)
          : gradient_norm(devices_.model(device).parameters().gradients());
}

void InnerStep::rethrow(std::size_t device, const std::exception_ptr& thrown, const Step& step) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    const auto& share = step.shares[device];
    const int64_t failed = std::min(share.micro_batch, share.sequences);
    int64_t largest = 0;
    devices_.run_on(device, [&](std::size_t) {
      largest = largest_micro_batch(devices_.model(device), step.batch, failed);
    });
    throw ConfigError(fmt::format(
        "devices[{}]: its memory has no room for a micro-batch of {} sequences of {} tokens{}",
        device, failed, step.batch.length,
        largest > 0 ? fmt::format("; the largest that fits is {}: set plan.micro_batch, or the "
                                  "site's own under sites, to at most that",
                                  largest)
                    : "; not even one fits: it needs a smaller model, a smaller "
                      "data.sequence_length or a device with more memory"));
  }
}

NamedBuffers InnerStep::pull_state() {
  FARSTEP_CHECK(!under_way_, "a step is under way");
  return optimizers_.front()->pull_state();
}

void InnerStep::push_state() {
  FARSTEP_CHECK(!under_way_, "a step is under way");
  optimizers_.front()->push_state();
  const auto state = optimizers_.front()->pull_state();
  for (std::size_t device = 1; device < optimizers_.size(); ++device) {
    devices_.run_on(device, [&](std::size_t) {
      const auto copy = optimizers_[device]->pull_state();
      for (std::size_t i = 0; i < state.size(); ++i) {
        std::ranges::copy(state[i].bytes, copy[i].bytes.begin());
      }
      optimizers_[device]->push_state();
    });
  }
}

}  // namespace farstep
