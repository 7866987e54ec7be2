// Generates text with a model, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/model/llama/decoder.h"

namespace farstep {

struct GenerateSettings {
  int64_t tokens = 100;      // new tokens at most
  double temperature = 0.8;  // 0 always takes the likeliest token
  int64_t top_k = 50;        // sample among this many likeliest tokens; 0 is all
  // Sample among the fewest of these likeliest tokens whose probabilities sum to this (nucleus
  // sampling), above 0; 1 is all.
  double top_p = 1;
  int64_t vocabulary =
      0;  // only ids below this, where a model has more than its tokenizer; 0 is all
  uint64_t seed = 1;
  std::vector<int64_t> ends = {};  // tokens, each of which ends the text
};

// Continues `prompt` (at least one token id). Calls `on_token` with each new id but an end, until
// it returns false. The model sees the newest tokens, at most the decoder's capacity; where the
// capacity is used up, it goes on with the newest half of them. What the decoder has read is
// forgotten. The same weights, prompt and settings produce the same ids.
void generate(Decoder& decoder, std::vector<int64_t> prompt, const GenerateSettings& settings,
              const std::function<bool(int64_t)>& on_token);

}  // namespace farstep
