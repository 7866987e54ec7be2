#include "trainer/model/convnet/convnet.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/model/convnet/nets.h"

namespace farstep {

namespace {

class ListedWeights : public WeightSource {
 public:
  at::Tensor weight(const std::string& name, const std::vector<int64_t>& shape,
                    int64_t positions) override {
    builder_.weight(name, shape, deviation(2, shape));
    note_product(shape, positions);
    return {};
  }
  at::Tensor head(const std::string& name, const std::vector<int64_t>& shape) override {
    builder_.table(name, shape, deviation(1, shape));
    note_product(shape, 1);
    return {};
  }
  at::Tensor constant(const std::string& name, int64_t size, double value) override {
    builder_.constant(name, {size}, value);
    return {};
  }
  ListedNet finish() { return {.layout = builder_.finish(), .products = std::move(products_)}; }

 private:
  static int64_t inputs_of(const std::vector<int64_t>& shape) {
    return num_elements(shape) / shape.front();
  }
  static double deviation(double gain, const std::vector<int64_t>& shape) {
    return std::sqrt(gain / static_cast<double>(inputs_of(shape)));
  }
  void note_product(const std::vector<int64_t>& shape, int64_t positions) {
    products_.push_back(
        {.inner = inputs_of(shape), .columns = shape.front(), .positions = positions});
  }

  LayoutBuilder builder_;
  std::vector<LayerProduct> products_;
};

class ModelWeights : public WeightSource {
 public:
  explicit ModelWeights(const Parameters& parameters) : parameters_(parameters) {}

  at::Tensor weight(const std::string& name, const std::vector<int64_t>&, int64_t) override {
    return parameters_.leaf(name);
  }
  at::Tensor head(const std::string& name, const std::vector<int64_t>&) override {
    return parameters_.leaf(name);
  }
  at::Tensor constant(const std::string& name, int64_t, double) override {
    return parameters_.leaf(name);
  }

 private:
  const Parameters& parameters_;
};

at::ScalarType type_of(ComputeType compute, at::Device device) {
  FARSTEP_CHECK(compute != ComputeType::kFP8, "a convolutional net has no fp8");
  const bool is_bf16 =
      compute == ComputeType::kBF16 || (compute == ComputeType::kAuto && !device.is_cpu());
  return is_bf16 ? at::kBFloat16 : at::kFloat;
}

at::Tensor summed_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Sum);
}

}  // namespace

ListedNet list_net(const ConvNetConfig& config) {
  ListedWeights weights;
  net(Layers(weights, at::kFloat, config.norm_groups, {}),
      {config.channels, config.height, config.width}, config);
  return weights.finish();
}

ConvNet::ConvNet(const ConvNetConfig& config, at::Device device, ComputeType compute)
    : config_(config),
      products_(type_of(compute, device)),
      parameters_(list_net(config).layout, device) {}

at::Tensor ConvNet::logits(const at::Tensor& images, const std::stop_token& stop) {
  FARSTEP_CHECK(images.dim() == 4 && images.size(0) > 0 && images.size(1) == config_.channels &&
                    images.size(2) == config_.height && images.size(3) == config_.width,
                "images are not (B, {}, {}, {})", config_.channels, config_.height, config_.width);
  ModelWeights weights(parameters_);
  const Feature input{config_.channels, config_.height, config_.width, images};
  return net(Layers(weights, products_, config_.norm_groups, stop), input, config_)
      .values.to(at::kFloat);
}

SummedScore ConvNet::summed_score(at::TensorList batch, const std::stop_token& stop) {
  throw_if_stopped(stop);
  const at::NoGradGuard no_grad;
  const auto outputs = logits(batch[0], stop);
  return {.loss = summed_cross_entropy(outputs, batch[1]),
          .hits = outputs.argmax(1).eq(batch[1]).sum()};
}

at::Tensor ConvNet::summed_loss(at::TensorList batch, const std::stop_token& stop) {
  return summed_score(batch, stop).loss;
}

at::Tensor ConvNet::backpropagate(at::TensorList batch, const GradientPass& pass) {
  FARSTEP_CHECK(batch.size() == 2, "a batch is images and labels");
  if (!pass.add) parameters_.gradients().zero_();
  const auto loss = summed_cross_entropy(logits(batch[0], pass.stop), batch[1]) * pass.scale;
  throw_if_stopped(pass.stop);
  loss.backward();
  if (pass.ready) pass.ready(0, parameters_.size());
  return loss.detach();
}

std::unique_ptr<ConvNet> make_convnet(const ConvNetConfig& config, at::Device device,
                                      ComputeType compute, bool recompute) {
  if (recompute) {
    throw ConfigError(
        "devices[].recompute: a convolutional net cannot compute again what it does not keep; set "
        "recompute to false");
  }
  return std::make_unique<ConvNet>(config, device, compute);
}

}  // namespace farstep
