// Muon: momentum for the hidden matrices, whose update is made nearly orthogonal. Embeddings, the
// head, norms and biases are updated by AdamW.
//
// An update of a matrix of r rows and c columns has all singular values near 1. Its scale is 0.2
// sqrt(max(r, c)): then the elements of an update are as large as AdamW's typically are, and both
// use one learning rate. A tensor of more than two dimensions is a matrix of its first one.
//
// On any device. State: the momentum (fp32), and AdamW's of the rest.
//
// Source: Jordan et al. 2024; Muon is Scalable for LLM Training, Liu et al. 2025 (the scale, weight
// decay). As torch.optim.Muon with adjust_lr_fn = "match_rms_adamw".
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "trainer/inner/muon/muon_config.h"
#include "trainer/inner/optimizer/adamw.h"
#include "trainer/inner/optimizer/host_optimizer.h"

namespace farstep {

// Returns the largest magnitude of a value of an update, for a learning rate of 1.
double largest_update(std::span<const ParameterSpec> layout);

class Muon : public HostOptimizer {
 public:
  // Updates `groups` of `parameters`, in the layout's order.
  Muon(const MuonConfig& config, const AdamWConfig& adamw, Parameters& parameters,
       std::span<const ParameterSpec> groups);

  // "muon_momentum", flat, and AdamW's.
  NamedBuffers pull_state() override;
  void push_state() override;

 protected:
  void change_values(double learning_rate, double gradient_factor) override;

 private:
  // Matrices of one shape, which are updated together.
  struct Batch {
    int64_t rows = 0, columns = 0;
    std::vector<int64_t> offsets, offsets_in_state;
  };
  static std::vector<Batch> batches_of(std::span<const ParameterSpec> matrices, at::Device device);
  void update_batch(const Batch& batch, double learning_rate, double gradient_factor);

  const MuonConfig config_;
  const std::vector<ParameterSpec> matrices_;
  const std::vector<Batch> batches_;
  at::Tensor momentum_;  // of the matrices, one after the other without gaps
  HostMirror host_momentum_;
  AdamW rest_;
};

}  // namespace farstep
