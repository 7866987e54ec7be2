// Text from a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/model/llama.h"

namespace farstep {

struct GenerateSettings {
  int64_t tokens = 100;      // to add at most
  int64_t context = 1024;    // tokens that the model sees at most, the newest
  double temperature = 0.8;  // 0 takes the likeliest token always
  int64_t top_k = 50;        // only among so many likeliest; 0 is all
  uint64_t seed = 1;
  int64_t eos = -1;  // ends the text; negative does not
};

// Continues `prompt` (at least one token id); `on_token` is given every new id as it comes. The
// same model, prompt and settings give the same ids.
void generate(Llama& model, std::vector<int64_t> prompt, const GenerateSettings& settings,
              const std::function<void(int64_t)>& on_token);

}  // namespace farstep
