#include "trainer/inner/optimizer.h"

#include <vector>

#include "trainer/model/host_mirror.h"

namespace farstep {

namespace {

class AdamW : public Optimizer {
 public:
  AdamW(const InnerConfig& config, Parameters& parameters)
      : config_(config),
        first_moment_(at::zeros_like(parameters.values())),
        second_moment_(at::zeros_like(parameters.values())),
        host_first_moment_(first_moment_),
        host_second_moment_(second_moment_) {
    const auto& layout = parameters.layout();
    for (std::size_t first = 0; first < layout.size();) {
      // Neighbours of one kind are updated as one tensor.
      std::size_t last = first;
      while (last + 1 < layout.size() && layout[last + 1].decays == layout[first].decays) ++last;
      const auto view = [&](const at::Tensor& flat) {
        return flat.narrow(0, layout[first].offset, layout[last].end() - layout[first].offset);
      };
      auto& group = layout[first].decays ? decaying_ : others_;
      group.values.push_back(view(parameters.values()));
      group.gradients.push_back(view(parameters.gradients()));
      group.first_moments.push_back(view(first_moment_));
      group.second_moments.push_back(view(second_moment_));
      first = last + 1;
    }
  }

  void update(double learning_rate) override {
    ++step_;
    update(decaying_, learning_rate, config_.weight_decay);
    update(others_, learning_rate, 0);
  }

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
  // Parameters with one weight decay, as views into the flat vectors.
  struct Group {
    std::vector<at::Tensor> values, gradients, first_moments, second_moments;
  };

  void update(const Group& group, double learning_rate, double weight_decay) {
    const auto step = at::full({}, static_cast<double>(step_), first_moment_.options());
    const std::vector<at::Tensor> steps(group.values.size(), step);
    at::_fused_adamw_(group.values, group.gradients, group.first_moments, group.second_moments,
                      /*max_exp_avg_sqs=*/{}, steps, learning_rate, config_.beta1, config_.beta2,
                      weight_decay, config_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }

  const InnerConfig config_;
  at::Tensor first_moment_, second_moment_;
  HostMirror host_first_moment_, host_second_moment_;
  int64_t step_ = 0;
  Group decaying_, others_;
};

class PlainDescent : public Optimizer {
 public:
  explicit PlainDescent(Parameters& parameters) : parameters_(parameters) {}

  void update(double learning_rate) override {
    parameters_.values().sub_(parameters_.gradients(), learning_rate);
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
