// A convolutional image classifier, by LibTorch's operations and autograd.
//
// Convolutions and dense layers multiply in fp32 or bf16. Master weights, gradients, norms, the
// sums of a block and its shortcut, and the loss are fp32. On a CPU with a fixed number of threads
// equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/model/shape/convnet_config.h"
#include "trainer/model/shape/model_config.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// The matrix product that a layer is: (positions, inner) times (inner, columns) for each image.
struct LayerProduct {
  int64_t inner = 1, columns = 1, positions = 1;
};

struct ListedNet {
  std::vector<ParameterSpec> layout;
  std::vector<LayerProduct> products;  // of its forward pass
};

// Lists the net in the order of its forward pass. Weights decay, and begin normal with the variance
// 2 / inputs that keeps ReLU's outputs as large as its inputs (He et al. 2015); the head's with 1 /
// inputs, as no ReLU follows.
ListedNet list_net(const ConvNetConfig& config);

class ConvNet : public TrainableModel {
 public:
  // All parameters are 0. `compute` is bf16 or fp32, or auto: bf16 on a GPU and fp32 on a CPU.
  ConvNet(const ConvNetConfig& config, at::Device device, ComputeType compute);

  Parameters& parameters() override { return parameters_; }

  // A batch is images (B, channels, height, width), fp32, and labels (B), int64. The loss is the
  // cross-entropy of the labels.
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop = {}) override;
  // Counts the images whose label has the largest logit.
  SummedScore summed_score(at::TensorList batch, const std::stop_token& stop = {}) override;
  // All parts are ready at once, at the end. A stop is heeded between two layers of the forward
  // pass, and before the backward pass.
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override;

  // (B, classes), fp32, of images (B, channels, height, width).
  at::Tensor logits(const at::Tensor& images, const std::stop_token& stop = {});

 private:
  const ConvNetConfig config_;
  const at::ScalarType products_;
  Parameters parameters_;
};

// Makes such a net. Throws ConfigError with `recompute`: it keeps all that backward needs.
std::unique_ptr<ConvNet> make_convnet(const ConvNetConfig& config, at::Device device,
                                      ComputeType compute, bool recompute);

}  // namespace farstep
