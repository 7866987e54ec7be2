// Makes a dataset folder from text files: the work of `farstep tokenize`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer;
  int64_t train_vocabulary = 0;
  double validation_fraction = 0.05;
  int64_t shard_tokens = 100'000'000;
  int64_t threads = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("inputs", inputs,
          "text files and folders of them (.jsonl: a document a line, in its member text; other "
          "names: one document; each also .gz or .zst)",
          kPositional);
    visit("output", output, "dataset folder to make, or to replace", kRequired);
    visit("tokenizer", tokenizer, "SentencePiece model to use");
    visit("train_vocabulary", train_vocabulary,
          "pieces of a vocabulary to train on the text, instead of a model to use; 0 trains none",
          at_least(0));
    visit("validation_fraction", validation_fraction,
          "share at the end of each file that is kept for validation", in_range(0, 0.9));
    visit("shard_tokens", shard_tokens, "tokens of one shard file", at_least(1));
    visit("threads", threads, "threads that encode; 0 is one a core", in_range(0, 4096));
  }
};

struct TokenizeResult {
  int64_t vocabulary = 0;
  int64_t files = 0;
  SplitFacts train;
  SplitFacts validation;
};

// Writes the dataset folder (docs/token_shards.md); replaces an older one only after success. The
// bytes written do not depend on `threads`. Long documents are encoded in pieces of about 64 KiB,
// cut at blank lines if possible. For a vocabulary trained here that changes nothing; a model that
// adds a space before a text adds one before every piece. Calls `progress` from the caller's thread
// with the completed share and the current file. Throws ConfigError for inconsistent options,
// DataError for bad files.
TokenizeResult tokenize(const TokenizeOptions& options,
                        const std::function<void(double, const std::string&)>& progress);

}  // namespace farstep
