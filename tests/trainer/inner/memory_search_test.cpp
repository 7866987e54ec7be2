#include <new>

#include "heterogeneity/profile/device_memory.h"
#include "tests/support/catch.h"
#include "tests/trainer/inner/site_training.h"
#include "trainer/base/memory/out_of_memory.h"

namespace farstep {

namespace {

// A model on a device that has room for so many sequences.
class Roomy : public TrainableModel {
 public:
  explicit Roomy(int64_t sequences) : model_(small_model()), sequences_(sequences) {}
  Parameters& parameters() override { return model_.parameters(); }
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop) override {
    return model_.summed_loss(batch, stop);
  }
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override {
    if (batch[0].size(0) > sequences_) throw std::bad_alloc();
    return model_.backpropagate(batch, pass);
  }

 private:
  Llama model_;
  int64_t sequences_;
};

}  // namespace

TEST_CASE("the search for the largest micro-batch goes on where an inner step finds no room") {
  for (const int64_t room : {0, 1, 5}) {
    Roomy model(room);
    InnerStep step(model, inner_config());
    const auto memory = heterogeneity::open_cpu_memory(int64_t{1} << 30, 1);
    const auto fits = [&](int64_t sequences) {
      return memory->holds(sequences, [&] { step.run(some_batch(sequences, 9, 1), sequences, 0); });
    };
    CHECK(heterogeneity::largest_that_fits(fits, 100) == room);
  }
}

TEST_CASE("an inner step without room fails with an error of its own") {
  Roomy model(2);
  InnerStep step(model, inner_config());
  CHECK_THROWS_AS(step.run(some_batch(3, 9, 1), 3, 0), NoRoomError);
}

}  // namespace farstep
