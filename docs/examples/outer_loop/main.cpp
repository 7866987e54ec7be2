// Trains a plain LibTorch module at several sites by Farstep's outer optimizer. Each site learns
// from examples of its own. docs/library.md says how to build and start it.
//   outer_loop RUN SITE [FOLDER]   two JSON files; FOLDER: where the weights before and after each
//                                  sync are written
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/convert_parameters.h>
#include <torch/optim/adamw.h>

#include <farstep/outer.h>
#include <fstream>
#include <iostream>
#include <iterator>

constexpr int kRounds = 5, kLocalSteps = 20, kBatch = 64, kInputs = 8;

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int main(int argc, char** argv) try {
  if (argc < 3) throw std::invalid_argument("needs RUN and SITE, two JSON files");
  torch::manual_seed(1);  // the same weights at all sites
  torch::nn::Sequential model(torch::nn::Linear(kInputs, 32), torch::nn::Tanh(),
                              torch::nn::Linear(32, 1));
  // From here on the parameters are parts of one vector, which the outer optimizer replaces.
  auto flat = torch::nn::utils::parameters_to_vector(model->parameters()).detach().clone();
  torch::nn::utils::vector_to_parameters(flat, model->parameters());
  const std::span values(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel()));
  torch::optim::AdamW inner(model->parameters(), torch::optim::AdamWOptions(0.01));
  farstep::outer::Site site(text_of(argv[1]), text_of(argv[2]), values);
  torch::manual_seed(100 + site.place());  // examples of its own

  const auto keep = [&](int round, const char* when) {
    if (argc < 4) return;
    std::ofstream file(std::string(argv[3]) + "/" + std::to_string(round) + when);
    file.write(reinterpret_cast<const char*>(values.data()), std::ssize(std::as_bytes(values)));
  };

  keep(0, ".after");
  for (int round = 1; round <= kRounds; ++round) {
    double loss_sum = 0;
    for (int step = 0; step < kLocalSteps; ++step) {
      const auto x = torch::randn({kBatch, kInputs});
      const auto y = x.sin().sum(1, true);
      const auto loss = torch::nn::functional::mse_loss(model->forward(x), y);
      inner.zero_grad();
      loss.backward();
      inner.step();
      loss_sum += loss.item<double>();
    }
    keep(round, ".before");
    const auto done =
        site.sync(values, {.steps = kLocalSteps, .batch = kBatch, .tokens = kLocalSteps * kBatch});
    keep(round, ".after");
    std::cout << "round " << done.round << ": loss " << loss_sum / kLocalSteps << ", weights "
              << done.hash << std::endl;
  }
  site.leave();
} catch (const std::exception& error) {
  std::cerr << "outer_loop: " << error.what() << std::endl;
  return 1;
}
