// Snapshots of what inner steps change, taken while they go on.
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/base/worker.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/language/make_model.h"

namespace farstep {
namespace {

std::vector<std::byte> bytes_of(const NamedBuffers& buffers) {
  std::vector<std::byte> all;
  for (const auto& buffer : buffers)
    all.insert(all.end(), buffer.bytes.begin(), buffer.bytes.end());
  return all;
}

// What a snapshot is to hold.
std::vector<std::byte> state_now(InnerStep& inner, Parameters& parameters, bool with_values) {
  auto state = inner.pull_state();
  if (with_values) state.push_back(f32_buffer("theta_local", parameters.host_values().pull()));
  return bytes_of(state);
}

TEST_CASE("a snapshot holds the state of its moment and changes no bit of the training") {
  for (const auto optimizer :
       {InnerOptimizer::kAdamW, InnerOptimizer::kMuon, InnerOptimizer::kSgd}) {
    for (const bool with_values : {false, true}) {
      auto config = inner_config();
      config.optimizer = optimizer;
      const auto model = make_model(kSmallConfig, at::kCPU, config.compute, config.step, false);
      const auto plain_model =
          make_model(kSmallConfig, at::kCPU, config.compute, config.step, false);
      for (auto* one : {model.get(), plain_model.get()}) one->parameters().initialise(5);
      InnerStep inner(*model, config), plain(*plain_model, config);
      Worker worker;
      for (int64_t step = 0; step < 12; ++step) {
        const auto batch = some_batch(4, 8, step);
        const auto wanted = state_now(inner, model->parameters(), with_values);
        const auto copies = inner.start_snapshot(with_values);
        auto copied = worker.submit([&] { inner.copy_snapshot(); });
        const auto result = inner.run(batch, 2, 0.5);
        CHECK(result.held_seconds >= 0);
        CHECK(result.loss == plain.run(batch, 2, 0.5).loss);
        copied.get();
        REQUIRE((bytes_of(copies) == wanted));
        REQUIRE(inner.run(batch, 2, 0.5).held_seconds == 0);
        plain.run(batch, 2, 0.5);
      }
      CHECK(at::equal(model->parameters().values(), plain_model->parameters().values()));
      CHECK((bytes_of(inner.pull_state()) == bytes_of(plain.pull_state())));
    }
  }
}

TEST_CASE("a snapshot can be restored as the state itself") {
  const auto config = inner_config();
  const auto model = make_model(kSmallConfig, at::kCPU, config.compute, config.step, false);
  model->parameters().initialise(5);
  InnerStep inner(*model, config);
  for (int64_t step = 0; step < 3; ++step) inner.run(some_batch(4, 8, step), 2, 0.5);
  const auto copies = inner.start_snapshot(true);
  inner.copy_snapshot();
  const auto wanted = inner.run(some_batch(4, 8, 7), 2, 0.6);

  const auto state = inner.pull_state();
  REQUIRE(copies.size() == state.size() + 1);
  for (std::size_t i = 0; i < state.size(); ++i) {
    CHECK(copies[i].name == state[i].name);
    CHECK(copies[i].shape == state[i].shape);
    std::ranges::copy(copies[i].bytes, state[i].bytes.begin());
  }
  inner.push_state();
  CHECK(copies.back().name == "theta_local");
  auto& mirror = model->parameters().host_values();
  std::ranges::copy(copies.back().bytes, std::as_writable_bytes(mirror.pull()).begin());
  mirror.push();
  const auto again = inner.run(some_batch(4, 8, 7), 2, 0.6);
  CHECK(again.loss == wanted.loss);
  CHECK(again.gradient_norm == wanted.gradient_norm);
}

}  // namespace
}  // namespace farstep
