#include "trainer/model/convnet/convnet.h"

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"

namespace farstep {

namespace {

// As in LeNet-5 (LeCun et al. 1998).
constexpr int64_t kKernel = 5;
constexpr int64_t kPadding = kKernel / 2;  // an image keeps its size

at::Tensor half(const at::Tensor& images) {
  return at::max_pool2d(images, {2, 2});
}

}  // namespace

std::vector<ParameterSpec> convnet_layout(const ConvNetConfig& config) {
  LayoutBuilder builder;
  const auto layer = [&](const std::string& name, std::vector<int64_t> shape) {
    const int64_t outputs = shape.front();
    const int64_t inputs = num_elements(shape) / outputs;
    const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
    if (name == "linear2") {  // a row for each class
      builder.table(name + ".weight", std::move(shape), deviation);
    } else {
      builder.weight(name + ".weight", std::move(shape), deviation);
    }
    builder.constant(name + ".bias", {outputs}, 0);
  };
  layer("conv1", {config.channels1, 1, kKernel, kKernel});
  layer("conv2", {config.channels2, config.channels1, kKernel, kKernel});
  layer("linear1", {config.hidden, config.channels2 * (config.height / 4) * (config.width / 4)});
  layer("linear2", {config.classes, config.hidden});
  return builder.finish();
}

ConvNet::ConvNet(const ConvNetConfig& config, at::Device device)
    : config_(config),
      parameters_(convnet_layout(config), device),
      conv1_(layer("conv1")),
      conv2_(layer("conv2")),
      linear1_(layer("linear1")),
      linear2_(layer("linear2")) {
  FARSTEP_CHECK(config.height % 4 == 0 && config.width % 4 == 0, "images of {} x {}", config.height,
                config.width);
}

ConvNet::Layer ConvNet::layer(const char* name) const {
  return {parameters_.leaf(std::string(name) + ".weight"),
          parameters_.leaf(std::string(name) + ".bias")};
}

at::Tensor ConvNet::logits(const at::Tensor& images) {
  const auto convolve = [](const at::Tensor& x, const Layer& layer) {
    return at::conv2d(x, layer.weight, layer.bias, /*stride=*/1, kPadding);
  };
  auto x = half(at::relu(convolve(images, conv1_)));
  x = half(at::relu(convolve(x, conv2_)));
  x = at::relu(at::linear(x.flatten(1), linear1_.weight, linear1_.bias));
  return at::linear(x, linear2_.weight, linear2_.bias);
}

at::Tensor ConvNet::summed_loss(at::TensorList batch, const std::stop_token& stop) {
  throw_if_stopped(stop);
  const at::NoGradGuard no_grad;
  return at::cross_entropy_loss(logits(batch[0]), batch[1], /*weight=*/{}, at::Reduction::Sum);
}

at::Tensor ConvNet::backpropagate(at::TensorList batch, const GradientPass& pass) {
  FARSTEP_CHECK(batch.size() == 2, "a batch is images and labels");
  if (!pass.add) parameters_.gradients().zero_();
  const auto loss =
      at::cross_entropy_loss(logits(batch[0]), batch[1], /*weight=*/{}, at::Reduction::Sum) *
      pass.scale;
  loss.backward();
  if (pass.ready) pass.ready(0, parameters_.size());
  return loss.detach();
}

}  // namespace farstep
