#include "trainer/model/convnet/convnet.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

const ConvNetConfig kSmall{
    .height = 8, .width = 12, .classes = 3, .channels1 = 2, .channels2 = 3, .hidden = 5};

struct Images {
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> first(int64_t count) const { return part(0, count); }
  std::vector<at::Tensor> part(int64_t begin, int64_t count) const {
    return {tensors[0].narrow(0, begin, count), tensors[1].narrow(0, begin, count)};
  }
};

Images some_images(int64_t count) {
  auto pixels = at::sin(at::arange(count * 8 * 12, at::kFloat) * 1.7).view({count, 1, 8, 12});
  return {{pixels, at::arange(count, at::kLong) % 3}};
}

// A net with weights that no symmetry cancels.
ConvNet small_net() {
  ConvNet net(kSmall, at::kCPU);
  net.parameters().initialise(3);
  auto values = net.parameters().values();
  values.add_(at::cos(at::arange(values.numel(), at::kFloat)) * 0.05);
  return net;
}

}  // namespace

TEST_CASE("weights of the net begin with the variance 2 / inputs and biases at 0") {
  ConvNet net({.channels1 = 32, .channels2 = 64, .hidden = 512}, at::kCPU);
  net.parameters().initialise(1);
  for (const auto& spec : net.parameters().layout()) {
    const auto& leaf = net.parameters().leaf(spec.name);
    INFO(spec.name);
    CHECK(spec.decays == (spec.name.find("weight") != std::string::npos));
    if (!spec.decays) {
      CHECK(leaf.count_nonzero().item<int64_t>() == 0);
      continue;
    }
    const double inputs = static_cast<double>(spec.size() / spec.shape.front());
    CHECK(leaf.std().item<double>() == Approx(std::sqrt(2 / inputs)).epsilon(0.1));
  }
}

TEST_CASE("the net's gradient is the slope of its loss along any direction") {
  auto net = small_net();
  const auto images = some_images(6);
  net.set_gradients(images.tensors, 1.0);
  auto values = net.parameters().values();
  const auto start = values.clone();
  const auto gradient = net.parameters().gradients().clone();
  for (const auto& spec : net.parameters().layout()) {
    INFO(spec.name);
    // Along the parameter's own gradient; a step in which few ReLUs change their side.
    auto direction = at::zeros_like(values);
    direction.narrow(0, spec.offset, spec.size())
        .copy_(gradient.narrow(0, spec.offset, spec.size()));
    const double norm = direction.norm().item<double>();
    REQUIRE(norm > 0);
    const double step = 2e-3 / norm;
    const auto loss_at = [&](double distance) {
      values.copy_(start + distance * direction);
      return net.summed_loss(images.tensors).item<double>();
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    CHECK(slope == Approx(norm * norm).epsilon(0.02));
  }
}

TEST_CASE("gradients of the net add up over the parts of a batch") {
  auto net = small_net();
  const auto images = some_images(7);
  const double loss = net.set_gradients(images.tensors, 0.5).item<double>();
  CHECK(2 * loss == Approx(net.summed_loss(images.tensors).item<double>()).epsilon(1e-5));
  const auto whole = net.parameters().gradients().clone();
  int calls = 0;
  net.set_gradients(images.first(3), 0.5);
  net.backpropagate(images.part(3, 4),
                    {.scale = 0.5, .add = true, .ready = [&](int64_t begin, int64_t end) {
                       CHECK(begin == 0);
                       CHECK(end == net.parameters().size());
                       ++calls;
                     }});
  CHECK(calls == 1);
  CHECK(at::allclose(net.parameters().gradients(), whole, 1e-4, 1e-6));
}

TEST_CASE("the net refuses images that two poolings do not halve") {
  CHECK_THROWS_AS(ConvNet({.height = 10}, at::kCPU), InternalError);
}

}  // namespace farstep
