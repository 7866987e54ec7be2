// Generates text with a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/model/llama/llama.h"

namespace farstep {

struct GenerateSettings {
  int64_t tokens = 100;      // new tokens at most
  int64_t context = 1024;    // the newest tokens that the model reads at most
  double temperature = 0.8;  // 0 always takes the likeliest token
  int64_t top_k = 50;        // sample among this many likeliest tokens; 0 is all
  uint64_t seed = 1;
  int64_t eos = -1;  // token that ends the text; negative: none
};

// Continues `prompt` (at least one token id). Calls `on_token` with each new id. The same model,
// prompt and settings produce the same ids.
void generate(Llama& model, std::vector<int64_t> prompt, const GenerateSettings& settings,
              const std::function<void(int64_t)>& on_token);

}  // namespace farstep
