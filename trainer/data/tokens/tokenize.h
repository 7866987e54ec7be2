// Makes a dataset folder from text files: the work of `farstep tokenize`.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/config/fields.h"
#include "trainer/data/documents/document_faults.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/input_files.h"

namespace farstep {

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer;
  std::string end_token;
  SpecialTokens special_tokens = SpecialTokens::kText;
  std::string text_field = "text";
  BadText bad_text = BadText::kRefuse;
  double most_left_out = 0.01;
  UnknownFiles unknown_files = UnknownFiles::kRefuse;
  bool token_files = false;
  int64_t train_vocabulary = 0;
  double validation_fraction = 0.05;
  int64_t shard_tokens = 100'000'000;
  int64_t threads = 0;
  bool force = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("inputs", inputs,
          "files, folders of them, and patterns: texts (.txt, .md and their like: one document), "
          "JSON lines (.jsonl, .json: a document a line), both also .gz or .zst, and .parquet (a "
          "document a row)",
          kPositional);
    visit("output", output, "dataset folder to make", a_folder(kRequired));
    visit("tokenizer", tokenizer,
          "tokenizer to use: a tokenizer.json, a SentencePiece model, or a folder with one");
    visit("end_token", end_token,
          "token of a tokenizer.json that ends a document; default: as the tokenizer_config.json "
          "beside it says");
    visit("special_tokens", special_tokens,
          "what the name of a special token of a tokenizer.json becomes where a text has it: text "
          "like any other, or that token");
    visit("text_field", text_field,
          "member of a JSON line, or column of a Parquet file, that has the text");
    visit("bad_text", bad_text,
          "what happens with a line that is no JSON with a text, and with a file that is not UTF-8 "
          "text: refuse ends with a list of them, skip leaves them out");
    visit("most_left_out", most_left_out,
          "with bad_text skip, the share of documents that may be left out; more is an error",
          in_range(0, 1));
    visit("unknown_files", unknown_files,
          "what happens with a file of a kind that is not known, by its name and first bytes: "
          "refuse ends with a list of them, leave_out goes on without them, text and json_lines "
          "read them as that");
    visit("token_files", token_files,
          "read .bin files as token ids, of nanoGPT or llm.c, that this tokenizer made");
    visit("train_vocabulary", train_vocabulary,
          "pieces of a vocabulary to train on the text, instead of a model to use; 0 trains none",
          at_least(0));
    visit("validation_fraction", validation_fraction,
          "share of all documents that is kept for validation", in_range(0, 0.9));
    visit("shard_tokens", shard_tokens, "tokens of one shard file", at_least(1));
    visit("threads", threads, "threads that encode; 0 is one a core", in_range(0, 4096));
    visit("force", force, "replace the dataset that is in the output folder");
  }
};

struct TokenizeResult {
  int64_t vocabulary = 0;
  int64_t files = 0;
  int64_t skipped = 0;  // documents with a fault
  SplitFacts train;
  SplitFacts validation;
};

// How far tokenize() is.
struct TokenizeProgress {
  double share = 0;  // of the files' bytes
  std::string what;
  int64_t bytes = 0, tokens = 0;  // of text that is encoded and written
  bool trains = false;            // a vocabulary, which heeds no stop
};

// Writes the dataset folder (docs/token_shards.md); replaces an older one only after success. The
// bytes written do not depend on `threads`. Goes on with what a stopped or killed call of the same
// options and inputs has left; the bytes are the same then too. A call that has left out more than
// `most_left_out` keeps its work for one that allows it. Calls `progress` from the caller's
// thread. Logs a warning for an empty file, for what is left out, and for names of special tokens
// that become text. Throws ConfigError for
// inconsistent options, DataError for bad files: with `bad_text` refuse it reads on to the end, and
// names the first 20 faults. Throws Stopped if `stop` was requested; what is done is kept.
TokenizeResult tokenize(const TokenizeOptions& options,
                        const std::function<void(const TokenizeProgress&)>& progress,
                        const std::stop_token& stop = {});

}  // namespace farstep
