// How likely a language model finds given text.
//
// A text begins as its tokenizer opens it; or else after the token that ends the text before it, as
// documents do in training. So each of its own tokens is a target.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/model/evaluate.h"
#include "trainer/model/llama/llama.h"

namespace farstep {

// Returns the ids of a text that begins so.
std::vector<int64_t> ids_of_text(const Tokenizer& tokenizer, std::string_view text);

struct TextScore {
  double loss_sum = 0;  // cross-entropy, nats
  int64_t tokens = 0;

  double loss() const { return loss_sum / static_cast<double>(tokens); }
};

// Scores all ids but the first, at least one. They are read in windows of `length` inputs that do
// not overlap, `batch` at once. So a token sees at most `length` tokens before it.
TextScore score_text(Llama& model, std::span<const int64_t> ids, int64_t length, int64_t batch,
                     const TellShare& tell = {});

// A context and what may follow it.
struct ChoiceIds {
  std::vector<int64_t> context;               // at least one id
  std::vector<std::vector<int64_t>> endings;  // at least one id each
};

// Returns the log-likelihood of each ending after the context, in nats. Where both together have
// more than `length` + 1 ids the newest are read; ids of an ending that are not read do not count.
std::vector<double> score_endings(Llama& model, const ChoiceIds& ids, int64_t length);

}  // namespace farstep
