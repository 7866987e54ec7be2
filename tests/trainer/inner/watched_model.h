// A model that a test can watch or break, and a second device that has it.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "tests/trainer/inner/site_training.h"

namespace farstep {

using Shares = std::vector<int64_t>;

inline const auto kReductions = {ReductionKind::kBuckets, ReductionKind::kMaster};

// A model that does what a test wants when it is asked for gradients, and then as it would anyway.
class Watched : public TrainableModel {
 public:
  explicit Watched(std::function<void(const at::Tensor&)> watch)
      : model_(small_model()), watch_(std::move(watch)) {}
  Parameters& parameters() override { return model_.parameters(); }
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop) override {
    return model_.summed_loss(batch, stop);
  }
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override {
    watch_(batch.front());
    return model_.backpropagate(batch, pass);
  }

 private:
  Llama model_;
  std::function<void(const at::Tensor&)> watch_;
};

// A watch of a device whose memory has room for so many examples at the moment.
auto with_room_for(const int64_t&& room) = delete;  // refers to it
inline auto with_room_for(const int64_t& room) {
  return [&room](const at::Tensor& examples) {
    if (examples.size(0) > room) throw std::bad_alloc();
  };
}

inline std::vector<std::unique_ptr<Replica>> watched_replica(
    const std::function<void(const at::Tensor&)>& watch) {
  std::vector<std::unique_ptr<Replica>> replicas;
  replicas.push_back(
      std::make_unique<Replica>([&watch] { return std::make_unique<Watched>(watch); }));
  return replicas;
}

}  // namespace farstep
