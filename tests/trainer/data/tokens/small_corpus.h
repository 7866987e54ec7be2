// A small corpus, and a look at the dataset that is made of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/data/tokens/tokenize.h"

namespace farstep {

inline void ignore_progress(const TokenizeProgress&) {}

// Two plain texts, one of many pieces, and one JSONL of many documents.
inline void write_corpus(const std::filesystem::path& folder) {
  make_folder(folder);
  write_file(folder / "long.txt", sample_text(130000, 1));
  write_file(folder / "short.txt", sample_text(3000, 2));
  std::string lines;
  for (uint32_t i = 0; i < 100; ++i) {
    lines += Json{{"text", sample_text(50 + 10 * i, i)}}.dump() + "\n";
  }
  write_file(folder / "documents.jsonl", lines);
}

inline TokenizeOptions options_for(const TemporaryFolder& folder) {
  TokenizeOptions options;
  options.force = true;  // many tests make the same dataset again
  options.inputs = {(folder / "text").string()};
  options.output = (folder / "set").string();
  options.train_vocabulary = 350;
  options.threads = 2;
  return options;
}

inline std::vector<int64_t> all_tokens(const TokenDataset& dataset) {
  std::vector<int64_t> tokens(static_cast<std::size_t>(dataset.num_tokens()));
  dataset.read(0, tokens);
  return tokens;
}

// The split's text, documents separated by "<end>".
inline std::string decoded(const std::filesystem::path& folder, std::string_view split) {
  const auto tokenizer = Tokenizer::load(folder);
  std::string text;
  std::vector<int32_t> document;
  for (const auto token : all_tokens(TokenDataset(folder, split))) {
    if (token != tokenizer->eos()) {
      document.push_back(static_cast<int32_t>(token));
      continue;
    }
    text += tokenizer->decode(document) + "<end>";
    document.clear();
  }
  CHECK(document.empty());
  return text;
}

}  // namespace farstep
