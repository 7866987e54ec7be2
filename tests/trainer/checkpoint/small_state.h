// A train state with small buffers of its own, for tests.
#pragma once

#include "tests/trainer/checkpoint/owned_tensors.h"
#include "trainer/checkpoint/train_state.h"

namespace farstep {

struct SmallState {
  enum Filling { kRandom, kZeros };

  SmallState(int64_t round, int64_t step, Filling filling = kRandom) {
    global.add("model.embed_tokens.weight", DType::kF32, {1, 5});
    global.add("model.norm.weight", DType::kF32, {3});
    outer.add("momentum", DType::kF32, {8});
    site.add("exp_avg", DType::kF32, {8});
    if (step > 0) site.add("theta_local", DType::kF32, {8});
    if (filling == kZeros) {
      global = global.zeros();
      outer = outer.zeros();
      site = site.zeros();
    } else {
      state.progress = {.run = "novels",
                        .site = "north",
                        .round = round,
                        .step = step,
                        .loss_sum = 0.1 * static_cast<double>(step),
                        .windows = {.run_sequences = 40 * round + 10,
                                    .returned_sequences = {{3, 7}, {9, 10}},
                                    .reserved_sequences = {{.round = round + 1,
                                                            .site = "south",
                                                            .steps_before = 4,
                                                            .batch = 2,
                                                            .ranges = {{12, 20}}}}},
                        .site_sequences = 13 * round,
                        .generation = 3,
                        .theta_hash = "0123456789abcdef",
                        .round_seconds = 12.5,
                        .step_seconds = {0.25, 0.125},
                        .planner = {{"sites", {1, 2}}},
                        .products = {{"ways", {"mkl", "amx"}}}};
      state.run_config = {{"name", "novels"}, {"outer", {{"momentum", 0.9}}}};
      state.model_config = "{\"hidden_size\": 5}\n";
    }
    state.global = global.buffers();
    state.outer = outer.buffers();
    state.site = site.buffers();
  }

  bool operator==(const SmallState& other) const {
    return global == other.global && outer == other.outer && site == other.site &&
           to_json(state.progress) == to_json(other.state.progress) &&
           state.run_config == other.state.run_config &&
           state.model_config == other.state.model_config;
  }

  OwnedTensors global, outer, site;
  TrainState state;
};

}  // namespace farstep
