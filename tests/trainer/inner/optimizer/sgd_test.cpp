#include "trainer/inner/optimizer/sgd.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"

namespace farstep {

TEST_CASE("plain descent subtracts learning rate times gradient and has no state") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  parameters.initialise(1);
  auto gradients = parameters.gradients();
  gradients.normal_();
  Sgd sgd(parameters, parameters.layout());
  const auto wanted = parameters.values() - 0.25 * gradients;
  sgd.update(0.25);
  CHECK(at::allclose(parameters.values(), wanted, 0, 1e-7));
  CHECK(sgd.pull_state().empty());
}

TEST_CASE("plain descent of one group leaves the others as they are") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  auto gradients = parameters.gradients();
  gradients.fill_(1);
  const auto& group = parameters.layout()[2];
  Sgd sgd(parameters, std::span(&group, 1));
  sgd.update(0.5);
  CHECK(parameters.values().sum().item<double>() == -0.5 * static_cast<double>(group.size()));
  CHECK(parameters.leaf(group.name).eq(-0.5).all().item<bool>());
}

TEST_CASE("gradients that are not finite change nothing and their norm is returned") {
  Parameters parameters(llama_layout(kSmallConfig), at::kCPU);
  auto gradients = parameters.gradients();
  gradients[3] = std::nanf("");
  Sgd sgd(parameters, parameters.layout());
  CHECK(std::isnan(sgd.clip_and_update(0.5, 1.0)));
  CHECK(parameters.values().count_nonzero().item<int64_t>() == 0);
}

}  // namespace farstep
