#include "trainer/model/convnet/convnet.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <cstring>
#include <iostream>

#include "tests/support/catch.h"
#include "tests/trainer/model/first_gpu.h"
#include "tests/trainer/model/golden_case.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/model/device.h"

namespace farstep {

namespace {

constexpr const char* kCases[] = {"resnet18_grey", "resnet18_colour", "vgg16_dense",
                                  "vgg16_plain",   "pyramidnet",      "one_image"};

// One case of the golden file that scripts/reference_convnets.py writes.
class Golden : public GoldenCase {
 public:
  explicit Golden(const std::string& name) : GoldenCase("convnets.safetensors", name) {}

  ConvNetConfig config() const { return convnet_from_json(json("config"), name()); }
  at::Tensor labels() const {
    const auto& found = entry("labels");
    auto labels = at::empty(found.shape, at::kLong);
    std::memcpy(labels.mutable_data_ptr<int64_t>(), found.bytes.data(), found.bytes.size());
    return labels;
  }
  // The net with the file's weights.
  std::unique_ptr<ConvNet> net(at::Device device, ComputeType compute) const {
    auto net = std::make_unique<ConvNet>(config(), device, compute);
    for (const auto& spec : net->parameters().layout()) {
      net->parameters()
          .values()
          .narrow(0, spec.offset, spec.size())
          .copy_(values("weights/" + spec.name).flatten());
    }
    return net;
  }
};

double norm_of(const at::Tensor& x) {
  return x.to(at::kCPU, at::kDouble).norm().item<double>();
}

// Logits, loss and every gradient against the golden file's. A parameter's error is taken relative
// to its gradient's norm, or to 1e-2 of the whole gradient's where that is larger.
void compare_with_golden(const std::string& name, at::Device device, double tolerance) {
  INFO(name);
  const Golden golden(name);
  const auto net = golden.net(device, ComputeType::kFP32);
  const std::vector<at::Tensor> batch{golden.values("images").to(device),
                                      golden.labels().to(device)};
  const auto wanted_logits = golden.values("logits");
  const auto error_of_logits = norm_of(net->logits(batch[0]).cpu() - wanted_logits);
  CHECK(error_of_logits <= tolerance * norm_of(wanted_logits));
  const auto loss = net->set_gradients(batch, 1.0 / static_cast<double>(batch[1].numel()));
  CHECK(loss.item<double>() == Approx(golden.values("loss").item<double>()).epsilon(tolerance));
  const auto& layout = net->parameters().layout();
  double whole_norm = 0;
  for (const auto& spec : layout) {
    whole_norm = std::hypot(whole_norm, norm_of(golden.values("gradients/" + spec.name)));
  }
  for (const auto& spec : layout) {
    INFO(spec.name);
    const auto wanted = golden.values("gradients/" + spec.name);
    const auto error = norm_of(net->parameters().leaf(spec.name).grad().cpu() - wanted);
    CHECK(error <= tolerance * std::max(norm_of(wanted), 1e-2 * whole_norm));
  }
}

std::vector<at::Tensor> part_of(const std::vector<at::Tensor>& batch, int64_t begin,
                                int64_t count) {
  return {batch[0].narrow(0, begin, count), batch[1].narrow(0, begin, count)};
}

}  // namespace

TEST_CASE("parameters stand in the order of PyTorch's modules") {
  for (const auto* name : kCases) {
    const Golden golden(name);
    std::vector<std::string> names;
    for (const auto& spec : list_net(golden.config()).layout) names.push_back(spec.name);
    CHECK(golden.json("names") == names);
  }
}

TEST_CASE("logits, loss and gradients are PyTorch's") {
  for (const auto* name : kCases) {
    compare_with_golden(name, at::kCPU, 1e-5);
  }
}

// A sign that rounding turns at a ReLU changes much in nets of a few channels. So the gradient is
// compared as a whole: its cosine with the golden file's.
void compare_bf16_with_golden(const std::string& name, at::Device device) {
  INFO(name);
  const Golden golden(name);
  const auto net = golden.net(device, ComputeType::kBF16);
  const std::vector<at::Tensor> batch{golden.values("images").to(device),
                                      golden.labels().to(device)};
  const auto loss = net->set_gradients(batch, 1.0 / static_cast<double>(batch[1].numel()));
  CHECK(loss.item<double>() == Approx(golden.values("loss").item<double>()).epsilon(0.05));
  std::vector<at::Tensor> wanted;
  for (const auto& spec : net->parameters().layout()) {
    wanted.push_back(golden.values("gradients/" + spec.name).flatten());
  }
  const auto whole = at::cat(wanted).to(at::kDouble);
  const auto found = net->parameters().gradients().to(at::kCPU, at::kDouble);
  const double cosine = at::dot(whole, found).item<double>() / norm_of(whole) / norm_of(found);
  CHECK(cosine > 0.9);
}

TEST_CASE("loss and gradient in bf16 are near those of PyTorch") {
  for (const auto* name : kCases) compare_bf16_with_golden(name, at::kCPU);
}

TEST_CASE("a GPU computes what PyTorch does", "[gpu]") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  for (const auto* name : kCases) {
    compare_with_golden(name, *gpu, 1e-2);  // TF32
    compare_bf16_with_golden(name, *gpu);
  }
}

TEST_CASE("equal calls give equal bits, on one thread and on two") {
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (const auto compute : {ComputeType::kFP32, ComputeType::kBF16}) {
      const Golden golden("resnet18_grey");
      const auto net = golden.net(at::kCPU, compute);
      const std::vector<at::Tensor> batch{golden.values("images"), golden.labels()};
      net->set_gradients(batch, 1);
      const auto first = net->parameters().gradients().clone();
      for (int again = 0; again < 5; ++again) {
        net->set_gradients(batch, 1);
        CHECK(at::equal(net->parameters().gradients(), first));
      }
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("gradients, losses and hits add up over the parts of a batch") {
  for (const auto* name : {"resnet18_grey", "vgg16_plain", "pyramidnet"}) {
    INFO(name);
    const Golden golden(name);
    const auto net = golden.net(at::kCPU, ComputeType::kFP32);
    const std::vector<at::Tensor> batch{golden.values("images"), golden.labels()};
    const double loss = net->set_gradients(batch, 0.5).item<double>();
    const auto score = net->summed_score(batch);
    CHECK(2 * loss == Approx(score.loss.item<double>()).epsilon(1e-5));
    const auto named = net->logits(batch[0]).argmax(1);
    CHECK(score.hits.item<int64_t>() == (named == batch[1]).sum().item<int64_t>());
    const auto whole = net->parameters().gradients().clone();
    int calls = 0;
    net->set_gradients(part_of(batch, 0, 1), 0.5);
    net->backpropagate(part_of(batch, 1, 2),
                       {.scale = 0.5, .add = true, .ready = [&](int64_t begin, int64_t end) {
                          CHECK(begin == 0);
                          CHECK(end == net->parameters().size());
                          ++calls;
                        }});
    CHECK(calls == 1);
    // Each image is normalised alone, so a part computes what the whole does.
    CHECK(norm_of(net->parameters().gradients() - whole) <= 1e-5 * norm_of(whole));
    const double parts = net->summed_loss(part_of(batch, 0, 1)).item<double>() +
                         net->summed_loss(part_of(batch, 1, 2)).item<double>();
    CHECK(parts == Approx(2 * loss).epsilon(1e-5));
  }
}

TEST_CASE("a stop ends a pass of the net and images of another size are a bug") {
  const Golden golden("resnet18_grey");
  const auto net = golden.net(at::kCPU, ComputeType::kFP32);
  const std::vector<at::Tensor> batch{golden.values("images"), golden.labels()};
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(net->summed_loss(batch, stop.get_token()), Stopped);
  CHECK_THROWS_AS(net->backpropagate(batch, {.stop = stop.get_token()}), Stopped);
  CHECK_THROWS_AS(net->logits(at::zeros({1, 1, 28, 27})), InternalError);
  CHECK_THROWS_AS(net->logits(at::zeros({0, 1, 28, 28})), InternalError);
  CHECK_THROWS_AS(make_convnet(golden.config(), at::kCPU, ComputeType::kFP32, true), ConfigError);
}

}  // namespace farstep
