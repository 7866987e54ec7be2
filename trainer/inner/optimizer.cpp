#include "trainer/inner/optimizer.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "trainer/inner/gpu_update.h"
#include "trainer/inner/gradient_norm.h"
#include "trainer/kernels/adamw.h"
#include "trainer/model/host_mirror.h"

namespace farstep {

namespace {

std::vector<DecayStretch> stretches(const std::vector<ParameterSpec>& layout) {
  std::vector<DecayStretch> found;
  for (const auto& spec : layout) {
    if (found.empty() || found.back().decays != spec.decays) {
      found.push_back({spec.offset, spec.offset, spec.decays});
    }
    found.back().end = spec.end();
  }
  return found;
}

double update_by_norm(Optimizer& optimizer, const Parameters& parameters, double learning_rate,
                      const std::optional<double>& clip_norm) {
  const double norm = gradient_norm(parameters.gradients());
  if (std::isfinite(norm)) optimizer.update(learning_rate, clip_factor(norm, clip_norm));
  return norm;
}

class AdamW : public Optimizer, private DeferredUpdate {
 public:
  AdamW(const InnerConfig& config, Parameters& parameters)
      : config_(config),
        parameters_(parameters),
        stretches_(stretches(parameters.layout())),
        first_moment_(at::zeros_like(parameters.values())),
        second_moment_(at::zeros_like(parameters.values())),
        host_first_moment_(first_moment_),
        host_second_moment_(second_moment_),
        on_gpu_(make_gpu_update(parameters, stretches_)) {}

  void update(double learning_rate, double gradient_factor) override {
    ++step_;
    if (first_moment_.is_cpu()) {
      update_on_cpu(learning_rate, gradient_factor);
    } else {
      update_by_libtorch(learning_rate, gradient_factor);
    }
  }

  double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) override {
    if (!on_gpu_) return update_by_norm(*this, parameters_, learning_rate, clip_norm);
    ask(learning_rate, clip_norm);
    give(/*losses=*/nullptr, 0);
    fetch();
    return wait().gradient_norm;
  }

  DeferredUpdate* deferred() override { return on_gpu_ ? this : nullptr; }

  NamedBuffers pull_state() override {
    const auto buffer = [](const char* name, std::span<float> values) {
      return NamedBuffer{
          name, DType::kF32, {static_cast<int64_t>(values.size())}, std::as_writable_bytes(values)};
    };
    return {buffer("exp_avg", host_first_moment_.pull()),
            buffer("exp_avg_sq", host_second_moment_.pull()),
            {"step", DType::kI64, {}, std::as_writable_bytes(std::span(&step_, 1))}};
  }

  void push_state() override {
    host_first_moment_.push();
    host_second_moment_.push();
  }

 private:
  void ask(double learning_rate, const std::optional<double>& clip_norm) override {
    on_gpu_->ask(step_number(step_ + 1, learning_rate, /*gradient_factor=*/1),
                 clip_norm.value_or(std::numeric_limits<double>::infinity()));
  }
  void give(const float* losses, int64_t count) override {
    on_gpu_->give(first_moment_, second_moment_, losses, count);
  }
  void fetch() override {
    on_gpu_->fetch();
    ++step_;
  }
  UpdateOutcome wait() override {
    const auto outcome = on_gpu_->wait();
    if (!outcome.taken) --step_;
    return outcome;
  }

  // A step of what decays.
  AdamWStep step_number(int64_t number, double learning_rate, double gradient_factor) const {
    const auto correction = [number](double beta) {
      return static_cast<float>(1 - std::pow(beta, static_cast<double>(number)));
    };
    return {.learning_rate = static_cast<float>(learning_rate),
            .beta1 = static_cast<float>(config_.beta1),
            .beta2 = static_cast<float>(config_.beta2),
            .epsilon = static_cast<float>(config_.epsilon),
            .weight_decay = static_cast<float>(config_.weight_decay),
            .gradient_factor = static_cast<float>(gradient_factor),
            .correction1 = correction(config_.beta1),
            .correction2 = correction(config_.beta2)};
  }

  void update_on_cpu(double learning_rate, double gradient_factor) {
    auto step = step_number(step_, learning_rate, gradient_factor);
    const float decay = step.weight_decay;
    const auto* const gradients = parameters_.gradients().const_data_ptr<float>();
    auto* const values = parameters_.values().mutable_data_ptr<float>();
    auto* const first = first_moment_.mutable_data_ptr<float>();
    auto* const second = second_moment_.mutable_data_ptr<float>();
    BF16* const copy = parameters_.bf16_copy();
    for (const auto& stretch : stretches_) {
      step.weight_decay = stretch.decays ? decay : 0.0F;
      at::parallel_for(stretch.begin, stretch.end, kGrainValues, [&](int64_t begin, int64_t end) {
        adamw(step, gradients + begin, end - begin, values + begin, first + begin, second + begin,
              copy == nullptr ? nullptr : copy + begin);
      });
    }
    parameters_.note_update();
  }

  void update_by_libtorch(double learning_rate, double gradient_factor) {
    if (gradient_factor != 1) parameters_.gradients().mul_(gradient_factor);
    for (const bool decays : {true, false}) {
      std::vector<at::Tensor> values, gradients, first, second;
      for (const auto& stretch : stretches_) {
        if (stretch.decays != decays) continue;
        const auto part = [&](const at::Tensor& flat) {
          return flat.narrow(0, stretch.begin, stretch.end - stretch.begin);
        };
        values.push_back(part(parameters_.values()));
        gradients.push_back(part(parameters_.gradients()));
        first.push_back(part(first_moment_));
        second.push_back(part(second_moment_));
      }
      const auto step = at::full({}, static_cast<double>(step_), first_moment_.options());
      const std::vector<at::Tensor> steps(values.size(), step);
      at::_fused_adamw_(values, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps,
                        learning_rate, config_.beta1, config_.beta2,
                        decays ? config_.weight_decay : 0, config_.epsilon, /*amsgrad=*/false,
                        /*maximize=*/false);
    }
  }

  static constexpr int64_t kGrainValues = 1 << 14;  // below, threads cost more than they bring

  const InnerConfig config_;
  Parameters& parameters_;
  const std::vector<DecayStretch> stretches_;
  at::Tensor first_moment_, second_moment_;
  HostMirror host_first_moment_, host_second_moment_;
  const std::unique_ptr<GpuUpdate> on_gpu_;
  int64_t step_ = 0;
};

class PlainDescent : public Optimizer {
 public:
  explicit PlainDescent(Parameters& parameters) : parameters_(parameters) {}

  void update(double learning_rate, double gradient_factor) override {
    parameters_.values().sub_(parameters_.gradients(), learning_rate * gradient_factor);
  }
  double clip_and_update(double learning_rate, const std::optional<double>& clip_norm) override {
    return update_by_norm(*this, parameters_, learning_rate, clip_norm);
  }
  NamedBuffers pull_state() override { return {}; }
  void push_state() override {}

 private:
  Parameters& parameters_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters) {
  if (config.optimizer == InnerOptimizer::kSgd) return std::make_unique<PlainDescent>(parameters);
  return std::make_unique<AdamW>(config, parameters);
}

}  // namespace farstep
