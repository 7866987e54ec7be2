#include "trainer/model/convnet/layers.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/stopped.h"

namespace farstep {

namespace {

constexpr double kNormEpsilon = 1e-5;

// Applies `compute` to the values, if a net is not only listed.
template <typename Compute>
at::Tensor computed(const Feature& x, Compute&& compute) {
  return x.values.defined() ? compute(x.values) : at::Tensor();
}

Feature half(const Feature& x, at::Tensor values) {
  return {x.channels, (x.height + 1) / 2, (x.width + 1) / 2, std::move(values)};
}

}  // namespace

int64_t groups_of(int64_t channels, int64_t most) {
  int64_t groups = std::max<int64_t>(1, std::min(most, channels / 2));
  while (channels % groups != 0) --groups;
  return groups;
}

// Memory stays in LibTorch's usual order, channel by channel. With the channels of a pixel side by
// side, group norm takes several times as long on a CPU. And oneDNN in LibTorch 2.11 then writes
// beyond its memory: in the backward pass of a kernel of 1 x 1 at stride 2, on several threads, if
// the channels are no multiple of 16.
Feature Layers::convolution(const std::string& name, const Feature& x,
                            const Convolution& shape) const {
  const auto out = [&](int64_t side) { return (side - 1) / shape.stride + 1; };
  Feature y{shape.outputs, out(x.height), out(x.width)};
  const auto weight =
      weights_.weight(name + ".weight", {shape.outputs, x.channels, shape.kernel, shape.kernel},
                      y.height * y.width);
  y.values = computed(x, [&](const at::Tensor& values) {
    throw_if_stopped(stop_);
    return at::conv2d(values.to(products_), weight.to(products_), /*bias=*/{}, shape.stride,
                      shape.kernel / 2);
  });
  return y;
}

Feature Layers::norm(const std::string& name, const Feature& x, double factor) const {
  const auto weight = weights_.constant(name + ".weight", x.channels, factor);
  const auto bias = weights_.constant(name + ".bias", x.channels, 0);
  auto y = x;
  y.values = computed(x, [&](const at::Tensor& values) {
    return at::group_norm(values.to(at::kFloat), groups_of(x.channels, norm_groups_), weight, bias,
                          kNormEpsilon, /*cudnn_enabled=*/false);
  });
  return y;
}

Feature Layers::dense(const std::string& name, const Feature& x, int64_t outputs) const {
  return linear(name, x,
                weights_.weight(name + ".weight", {outputs, x.channels * x.height * x.width},
                                /*positions=*/1),
                outputs);
}

Feature Layers::head(const std::string& name, const Feature& x, int64_t classes) const {
  return linear(name, x,
                weights_.head(name + ".weight", {classes, x.channels * x.height * x.width}),
                classes);
}

Feature Layers::linear(const std::string& name, const Feature& x, const at::Tensor& weight,
                       int64_t outputs) const {
  const auto bias = weights_.constant(name + ".bias", outputs, 0);
  return {outputs, 1, 1, computed(x, [&](const at::Tensor& values) {
            throw_if_stopped(stop_);
            return at::linear(values.flatten(1).to(products_), weight.to(products_),
                              bias.to(products_));
          })};
}

Feature relu(const Feature& x) {
  auto y = x;
  y.values = computed(x, [](const at::Tensor& values) { return at::relu(values); });
  return y;
}

Feature add(const Feature& x, const Feature& shortcut) {
  FARSTEP_CHECK(
      x.height == shortcut.height && x.width == shortcut.width && x.channels >= shortcut.channels,
      "a shortcut of {} channels of {} x {} to {} of {} x {}", shortcut.channels, shortcut.height,
      shortcut.width, x.channels, x.height, x.width);
  auto y = x;
  y.values = computed(x, [&](const at::Tensor& values) {
    const int64_t missing = x.channels - shortcut.channels;
    if (missing == 0) return values + shortcut.values;
    return values + at::constant_pad_nd(shortcut.values, {0, 0, 0, 0, 0, missing});
  });
  return y;
}

Feature max_pool(const Feature& x) {
  return half(x, computed(x, [](const at::Tensor& values) {
                return at::max_pool2d(values, {2, 2}, {2, 2}, /*padding=*/0, /*dilation=*/1,
                                      /*ceil_mode=*/true);
              }));
}

Feature mean_pool(const Feature& x) {
  return half(x, computed(x, [](const at::Tensor& values) {
                return at::avg_pool2d(values, {2, 2}, {2, 2}, /*padding=*/0, /*ceil_mode=*/true);
              }));
}

Feature mean(const Feature& x) {
  return {x.channels, 1, 1, computed(x, [](const at::Tensor& values) {
            return values.mean({2, 3});
          })};
}

Feature scale_to(const Feature& x, int64_t pixels) {
  return {x.channels, pixels, pixels, computed(x, [&](const at::Tensor& values) {
            return at::upsample_bilinear2d(values, {pixels, pixels}, /*align_corners=*/false);
          })};
}

}  // namespace farstep
