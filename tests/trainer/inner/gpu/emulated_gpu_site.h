// A site on a GPU that the CPU emulates: a model whose passes are the GPU's work, a recorder for
// that work, and the inner step over both.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "tests/support/emulated_gpu/stream_order.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/inner/gpu/graph_recorder.h"
#include "trainer/inner/inner_step.h"

namespace farstep {

inline int num_recordings = 0;

class EmulatedRecording : public Recording {
 public:
  explicit EmulatedRecording(EmulatedCommands work) : work_(std::move(work)) {}
  void replay() override {
    for (const auto& one : work_) one();
  }

 private:
  const EmulatedCommands work_;
};

class EmulatedRecorder : public StepRecorder {
 public:
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    EmulatedCommands recorded;
    emulated_recording = &recorded;
    try {
      work();
    } catch (...) {
      emulated_recording = nullptr;
      throw;
    }
    emulated_recording = nullptr;
    ++num_recordings;
    return std::make_unique<EmulatedRecording>(std::move(recorded));
  }
};

constexpr int64_t kBadToken = -1;

// Loss and gradient depend on every token and value, and are the GPU's work like any kernel's.
class EmulatedModel : public TrainableModel {
 public:
  EmulatedModel() : parameters_(llama_layout(kSmallConfig), at::kCPU) { parameters_.initialise(5); }

  Parameters& parameters() override { return parameters_; }
  at::Tensor summed_loss(at::TensorList /*batch*/, const std::stop_token& /*stop*/) override {
    return at::zeros({});
  }
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override {
    const at::Tensor tokens = batch[0];
    if (tokens.size(0) > room) throw std::bad_alloc();
    auto loss = at::empty({}, at::kFloat);
    auto* const gradients = parameters_.gradients().mutable_data_ptr<float>();
    const auto* const values = parameters_.values().const_data_ptr<float>();
    const bool add = pass.add;
    const auto scale = static_cast<float>(pass.scale);
    emulate_work([this, tokens, loss, gradients, values, add, scale] {
      tell_read(tokens.const_data_ptr(), tokens.nbytes());
      float sum = 0;
      for (int64_t i = 0; i < tokens.numel(); ++i) {
        const int64_t token = tokens.const_data_ptr<int64_t>()[i];
        sum += token == kBadToken ? std::nanf("") : static_cast<float>(token * (i % 5));
      }
      for (int64_t i = 0; i < parameters_.size(); ++i) {
        const float gradient = scale * (values[i] + 0.01F * sum * static_cast<float>(i % 7 - 3));
        gradients[i] = add ? gradients[i] + gradient : gradient;
      }
      *loss.mutable_data_ptr<float>() = scale * (sum + values[3]);
    });
    return loss;
  }
  std::optional<int64_t> recordable_memory() const override { return memory; }

  int64_t memory = 1;
  int64_t room = 1000;  // for sequences

 private:
  Parameters parameters_;
};

// A model and its training from one seed.
struct Site {
  explicit Site(bool graphs) {
    auto config = inner_config();
    config.cuda_graph = graphs;
    step = std::make_unique<InnerStep>(model, config);
  }
  std::optional<StepResult> start(const TokenBatch& batch, int64_t micro_batch, double progress) {
    return step->start(batch, std::vector{batch.sequences}, micro_batch, progress);
  }

  EmulatedModel model;
  std::unique_ptr<InnerStep> step;
};

}  // namespace farstep
