// A small convolutional net for grey images, by LibTorch's operations and autograd.
//
// Two times convolution (5 x 5), ReLU and 2 x 2 max-pooling, then two linear layers. All fp32. On a
// CPU with a fixed number of threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/config/fields.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

struct ConvNetConfig {
  int64_t height = 28, width = 28;
  int64_t classes = 10;
  int64_t channels1 = 8, channels2 = 16;
  int64_t hidden = 64;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("height", height, "rows of an image; a multiple of 4", at_least(4));
    visit("width", width, "columns of an image; a multiple of 4", at_least(4));
    visit("classes", classes, "what an image may show", at_least(2));
    visit("channels1", channels1, "channels of the first convolution", at_least(1));
    visit("channels2", channels2, "channels of the second convolution", at_least(1));
    visit("hidden", hidden, "width between the linear layers", at_least(1));
  }
};

// Weights and biases in the order of the forward pass. Weights decay; they begin normal, with the
// variance 2 / inputs that keeps ReLU's outputs as large as its inputs (He et al., 2015). Biases
// begin at 0.
std::vector<ParameterSpec> convnet_layout(const ConvNetConfig& config);

class ConvNet : public TrainableModel {
 public:
  // All parameters are 0. Throws InternalError unless height and width are multiples of 4, as two
  // poolings halve them.
  ConvNet(const ConvNetConfig& config, at::Device device);

  Parameters& parameters() override { return parameters_; }

  // A batch is images (B, 1, height, width), fp32, and labels (B), int64. The loss is the
  // cross-entropy of the labels.
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop = {}) override;
  // All parts are ready at once, at the end.
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override;

  // (B, classes), fp32, of images (B, 1, height, width).
  at::Tensor logits(const at::Tensor& images);

 private:
  struct Layer {
    at::Tensor weight, bias;
  };
  Layer layer(const char* name) const;

  const ConvNetConfig config_;
  Parameters parameters_;
  const Layer conv1_, conv2_, linear1_, linear2_;
};

}  // namespace farstep
