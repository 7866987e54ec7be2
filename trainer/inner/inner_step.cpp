// One inner step has two ways. Usually all devices compute gradients, the sum is formed, and the
// host waits for the update. A single GPU with kernels of its own gets the next step while it runs
// this one; the host learns each outcome a step later.
//
// No value changes before all gradients are there. So a stop, a lack of memory or a number that is
// not finite leaves the step before it whole.
#include "trainer/inner/inner_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/memory/out_of_memory.h"
#include "trainer/inner/gpu/graph_recorder.h"
#include "trainer/inner/make_reduction.h"
#include "trainer/inner/optimizer/gradient_norm.h"
#include "trainer/model/device.h"

namespace farstep {

namespace {

void require_finite(const StepResult& result, double progress) {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  throw DivergenceError(fmt::format(
      "training diverged at {:.4f} of the run: loss {}, gradient norm {}, learning rate {}; the "
      "step was not taken. A lower inner.peak_learning_rate or a longer warm-up usually helps",
      progress, result.loss, result.gradient_norm, result.learning_rate));
}

// Returns null if the host waits for each step.
std::unique_ptr<GpuStep> gpu_step([[maybe_unused]] const SiteDevices& devices,
                                  [[maybe_unused]] Optimizer& optimizer,
                                  [[maybe_unused]] const InnerConfig& config) {
#ifdef FARSTEP_HAS_CUDA
  // With several GPUs any of them may abandon a step, which a graph could not express.
  auto& model = devices.model(0);
  auto* const update = optimizer.gpu_update();
  if (devices.size() == 1 && update != nullptr && model.recordable_memory()) {
    const auto device = model.parameters().values().device();
    return make_gpu_step(model, *update, config.clip_norm,
                         config.cuda_graph ? make_graph_recorder(device) : nullptr);
  }
#endif
  return nullptr;
}

}  // namespace

struct InnerStep::Step {
  const BatchView& batch;
  const std::stop_token& stop;
  double progress = 0;
  std::vector<Share> shares;
  double learning_rate = 0;
  std::vector<ShareResult> done = {};
  std::vector<double> norms = {};  // of the sum, by updating device

  double loss() const {
    return std::accumulate(done.begin(), done.end(), 0.0,
                           [](double sum, const ShareResult& one) { return sum + one.loss; });
  }
  // A site's only micro-batch is compared with other sites' alone: else its norm is the update's.
  void spare_useless_norm() {
    for (auto& share : shares) {
      if (std::min(share.examples, share.micro_batch) == batch.examples) {
        share.measures_noise = false;
      }
    }
  }
  // Returns what the norms show, of which the sum counts `coefficient` of its parts in the gradient
  // of the update.
  std::optional<heterogeneity::GradientNoise> noise(double coefficient) const {
    std::vector<heterogeneity::MeanGradient> parts;
    for (const auto& one : done) {
      if (one.part) parts.push_back(*one.part);
    }
    // Without the sum of all sites there is no whole.
    if (parts.empty() || coefficient <= 0) return std::nullopt;
    const auto examples = static_cast<double>(batch.examples);
    const heterogeneity::MeanGradient whole{examples / coefficient, norms.front() * norms.front()};
    return noise_of_step(parts, whole, examples);
  }
  // All updating devices have summed the same gradients, so the first norm is everybody's.
  StepResult result() const {
    StepResult result{.loss = loss(),
                      .gradient_norm = norms.front(),
                      .learning_rate = learning_rate,
                      .tokens = batch.targets,
                      .device_seconds = {}};
    for (const auto& one : done) result.device_seconds.push_back(one.seconds);
    return result;
  }
};

// followed_ begins at a version that no values have, so every device copies the first values.
InnerStep::InnerStep(TrainableModel& model, const InnerConfig& config,
                     std::vector<std::unique_ptr<Replica>> replicas, bool across_sites)
    : config_(config),
      devices_(model, std::move(replicas)),
      reduction_(across_sites && !model.parameters().gradients().is_cpu()
                     ? nullptr
                     : make_reduction(config, devices_)),
      optimizer_(config, devices_, reduction_ ? devices_.size() : 1),
      followed_(devices_.size(), -1),
      on_gpu_(across_sites ? nullptr : gpu_step(devices_, optimizer_.first(), config)) {}

StepResult InnerStep::run(const BatchView& batch, int64_t micro_batch, const StepTerms& terms,
                          const std::stop_token& stop) {
  std::vector<int64_t> shares(num_devices());
  shares.front() = batch.examples;
  return run(batch, shares, micro_batch, terms, stop);
}

StepResult InnerStep::run(const BatchView& batch, std::span<const int64_t> shares,
                          int64_t micro_batch, const StepTerms& terms,
                          const std::stop_token& stop) {
  FARSTEP_CHECK(!is_under_way(), "a step is under way");
  auto result = start(batch, shares, micro_batch, terms, stop);
  return result ? *std::move(result) : *finish();
}

StepResult InnerStep::run_across(const BatchView& batch, std::span<const int64_t> shares,
                                 int64_t micro_batch, const StepTerms& terms, SiteReduction& across,
                                 const std::stop_token& stop) {
  FARSTEP_CHECK(!on_gpu_, "the gradient of this step is updated where it is made");
  return run_at_once(make_step(batch, shares, micro_batch, terms, stop), &across);
}

StepResult InnerStep::run_serving(const StepTerms& terms, SiteReduction& across) {
  FARSTEP_CHECK(num_devices() == 1 && !on_gpu_, "a site that serves alone has one device");
  across.begin_step();
  if (is_final_in_backward()) across.ready(0, 0, std::ssize(host_gradients()));
  sum_across(across);
  StepResult result{.learning_rate = rate_of(terms), .device_seconds = {}};
  result.gradient_norm =
      optimizer_.first().clip_and_update(result.learning_rate, config_.clip_norm);
  result.across_seconds = across.waited_seconds();
  require_finite(result, terms.progress);
  ++warm_steps_;
  return result;
}

std::span<float> InnerStep::host_gradients() {
  auto gradients = devices_.model(0).parameters().gradients();
  if (!gradients.is_cpu()) {
    if (!host_gradient_.defined()) {
      host_gradient_ =
          at::empty(gradients.sizes(), gradients.options().device(at::kCPU).pinned_memory(true));
    }
    gradients = host_gradient_;
  }
  return {gradients.data_ptr<float>(), static_cast<std::size_t>(gradients.numel())};
}

std::optional<StepResult> InnerStep::start(const BatchView& batch, std::span<const int64_t> shares,
                                           int64_t micro_batch, const StepTerms& terms,
                                           const std::stop_token& stop) {
  auto step = make_step(batch, shares, micro_batch, terms, stop);
  if (!on_gpu_) return run_at_once(std::move(step));
  const bool is_first = !is_under_way();
  try {
    on_gpu_->start(batch, micro_batch, {terms.progress, step.learning_rate});
  } catch (...) {
    rethrow(0, std::current_exception(), step);
  }
  ++warm_steps_;
  // Nothing is over yet; the caller gets this step's result with the next one.
  if (is_first) return std::nullopt;
  return finish();
}

int64_t InnerStep::warm_up() {
  warm_steps_ = 0;
  // A rule of Adam's (Ma and Yarats, "On the adequacy of untuned warmup for adaptive optimization",
  // AAAI 2021); plain descent has no moments.
  warm_up_steps_ =
      config_.optimizer == InnerOptimizer::kSgd ? 0 : std::llround(2 / (1 - config_.adamw.beta2));
  return warm_up_steps_;
}

// A fresh state is zeros, for every optimizer.
int64_t InnerStep::begin_anew() {
  FARSTEP_CHECK(!is_under_way(), "a step is under way");
  for (const auto& buffer : pull_state()) std::ranges::fill(buffer.bytes, std::byte{0});
  push_state();
  return warm_up();
}

std::optional<StepResult> InnerStep::finish() {
  if (!is_under_way()) return std::nullopt;
  const auto [settings, tokens, update, seconds, noise] = on_gpu_->finish();
  // If a step is not taken, the step after it is not taken either, so its outcome is ignored.
  while (!update.taken && is_under_way()) on_gpu_->finish();
  StepResult result{.loss = update.loss,
                    .gradient_norm = update.gradient_norm,
                    .learning_rate = settings.learning_rate,
                    .tokens = tokens,
                    .device_seconds = {seconds},
                    .noise = noise};
  require_finite(result, settings.progress);
  FARSTEP_CHECK(update.taken, "a step with finite numbers was not taken");
  return result;
}

double InnerStep::warm_up_factor() const {
  if (warm_steps_ >= warm_up_steps_) return 1;
  return static_cast<double>(warm_steps_ + 1) / static_cast<double>(warm_up_steps_);
}

double InnerStep::rate_of(const StepTerms& terms) const {
  return warm_up_factor() * terms.learning_rate_factor *
         (config_.rate.peak_learning_rate * terms.rate_share);
}

InnerStep::Step InnerStep::make_step(const BatchView& batch, std::span<const int64_t> shares,
                                     int64_t micro_batch, const StepTerms& terms,
                                     const std::stop_token& stop) const {
  FARSTEP_CHECK(micro_batch > 0, "a micro-batch has examples");
  FARSTEP_CHECK(shares.size() == num_devices() &&
                    std::accumulate(shares.begin(), shares.end(), int64_t{0}) == batch.examples,
                "{} shares of {} examples for {} devices", shares.size(), batch.examples,
                num_devices());
  FARSTEP_CHECK(batch.targets > 0, "a batch has targets");
  Step step{.batch = batch,
            .stop = stop,
            .progress = terms.progress,
            .shares = {},
            .learning_rate = rate_of(terms)};
  step.done.resize(num_devices());
  step.norms.resize(num_devices());
  for (int64_t first = 0; const int64_t examples : shares) {
    step.shares.push_back({first, examples, micro_batch, terms.measures_noise});
    first += examples;
  }
  return step;
}

StepResult InnerStep::run_at_once(Step step, SiteReduction* across) {
  if (!across) step.spare_useless_norm();
  const auto& values = devices_.model(0).parameters().values();
  const int64_t version = values._version();
  // Other devices' threads read the values on streams of their own.
  const bool all_follow =
      std::all_of(followed_.begin() + 1, followed_.end(), [=](int64_t v) { return v == version; });
  if (!all_follow) synchronize(values.device());
  const double held_before = optimizer_.first().held_seconds();
  if (reduction_) {
    FARSTEP_CHECK(reduction_->pass_on(across),
                  "these devices add up their gradients by themselves");
    reduction_->begin_step();
  }
  if (across) across->begin_step();
  const auto thrown = devices_.try_on_all([&](std::size_t device) {
    try {
      if (device > 0) follow_first(device, version);
      run_device(device, step, across);
    } catch (...) {
      // The other devices would wait for this one's buckets.
      if (reduction_) reduction_->abandon();
      if (across) across->abandon();
      throw;
    }
  });
  // All devices are done here, also after an exception: they use `step`.
  for (std::size_t device = 0; device < thrown.size(); ++device) {
    if (thrown[device]) rethrow(device, thrown[device], step);
  }
  if (reduction_) {
    // All devices took the same update, so none has to copy the first one's values.
    followed_.assign(num_devices(), values._version());
  } else {
    add_to_first();
    if (across) sum_across(*across);
    update(0, step);
  }
  auto result = step.result();
  result.held_seconds = optimizer_.first().held_seconds() - held_before;
  if (across) result.across_seconds = across->waited_seconds();
  result.noise = step.noise(across ? across->coefficient() : 1);
  // Thrown before the caller can record the step as done.
  require_finite(result, step.progress);
  ++warm_steps_;
  return result;
}

void InnerStep::run_device(std::size_t device, Step& step, SiteReduction* across) {
  auto& model = devices_.model(device);
  auto& done = step.done[device];
  if (!reduction_) {
    std::function<void(int64_t, int64_t)> ready;
    if (across && is_final_in_backward()) {
      ready = [&](int64_t begin, int64_t end) { across->ready(0, begin, end); };
    }
    done = share_gradients(model, step.batch, step.shares[device], ready, step.stop);
    return;
  }
  done = share_gradients(
      model, step.batch, step.shares[device],
      [&](int64_t begin, int64_t end) { reduction_->ready(device, begin, end); }, step.stop);
  if (reduction_->finish(device)) update(device, step);
}

bool InnerStep::is_final_in_backward() const {
  return num_devices() == 1 && devices_.model(0).parameters().gradients().is_cpu();
}

void InnerStep::sum_across(SiteReduction& across) {
  auto gradients = devices_.model(0).parameters().gradients();
  const bool is_on_gpu = !gradients.is_cpu();
  if (is_on_gpu) {
    host_gradients();  // makes the memory
    host_gradient_.copy_(gradients);
  }
  if (!is_final_in_backward()) across.ready(0, 0, gradients.numel());
  FARSTEP_CHECK(across.finish(0), "another one abandoned the step");
  if (is_on_gpu) gradients.copy_(host_gradient_);
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
  // A step that is not finite is not taken; its norm is only for the message.
  step.norms[device] =
      std::isfinite(step.loss())
          ? optimizer_.on(device).clip_and_update(step.learning_rate, config_.clip_norm)
          : gradient_norm(devices_.model(device).parameters().gradients());
}

void InnerStep::rethrow(std::size_t device, const std::exception_ptr& thrown, const Step& step) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    const auto& share = step.shares[device];
    // Searched for, because nobody can compute what an allocator holds.
    const int64_t failed = std::min(share.micro_batch, share.examples);
    int64_t largest = 0;
    // On the device's own thread, since only that one may use the model.
    devices_.run_on(device, [&](std::size_t) {
      largest = largest_micro_batch(devices_.model(device), step.batch, failed);
    });
    throw NoRoomError(
        fmt::format("devices[{}]: its memory has no room for a micro-batch of {} {}{}", device,
                    failed, step.batch.text,
                    largest > 0
                        ? fmt::format("; the largest that fits is {}: set plan.micro_batch, or the "
                                      "site's own under sites, to at most that",
                                      largest)
                        : "; not even one fits: it needs a smaller model, a smaller "
                          "data.sequence_length or a device with more memory"),
        largest);
  }
}

NamedBuffers InnerStep::start_snapshot(bool with_values) {
  FARSTEP_CHECK(!is_under_way(), "a step is under way");
  return optimizer_.first().start_snapshot(with_values);
}

NamedBuffers InnerStep::pull_state() {
  FARSTEP_CHECK(!is_under_way(), "a step is under way");
  return optimizer_.pull_state();
}

void InnerStep::push_state() {
  FARSTEP_CHECK(!is_under_way(), "a step is under way");
  optimizer_.push_state();
}

}  // namespace farstep
