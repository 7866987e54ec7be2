#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/data/tokens/tokenize.h"

namespace farstep {

namespace {

// A tokenizer.json of the characters of small texts, with an end that a text may name.
void write_tokenizer_json(const std::filesystem::path& file) {
  Json vocabulary = Json::object();
  for (const char letter : std::string(" \n</s>abcdefghijklmnopqrtuvwxyz.")) {
    vocabulary[std::string(1, letter)] = vocabulary.size();
  }
  const auto size = vocabulary.size();
  vocabulary["<unk>"] = size;
  const Json end = {{"id", size + 1}, {"content", "</s>"}, {"special", true}};
  write_file(file, Json{{"model",
                         {{"type", "BPE"},
                          {"vocab", vocabulary},
                          {"merges", Json::array()},
                          {"unk_token", "<unk>"}}},
                        {"added_tokens", Json::array({end})}}
                       .dump());
}

TokenizeOptions options_in(const TemporaryFolder& folder) {
  TokenizeOptions options;
  options.force = true;
  options.inputs = {(folder / "text").string()};
  options.output = (folder / "set").string();
  options.tokenizer = (folder / "tokenizer.json").string();
  options.validation_fraction = 0;
  return options;
}

TokenizeResult made(const TokenizeOptions& options) {
  return tokenize(options, [](const TokenizeProgress&) {});
}

// The dataset's text, with "<end>" behind each document.
std::string decoded(const TokenizeOptions& options) {
  const auto tokenizer = Tokenizer::load(options.output);
  const TokenDataset dataset(options.output, kTrainSplit);
  std::vector<int64_t> tokens(static_cast<std::size_t>(dataset.num_tokens()));
  dataset.read(0, tokens);
  std::string text;
  for (const auto token : tokens) {
    const auto id = static_cast<int32_t>(token);
    text += id == tokenizer->eos() ? "<end>" : tokenizer->decode({&id, 1});
  }
  return text;
}

}  // namespace

TEST_CASE("a text that names the end token ends no document, unless the user wants it") {
  TemporaryFolder folder;
  make_folder(folder / "text");
  write_file(folder / "text/a.txt", "one</s>two\n");
  write_file(folder / "text/b.txt", "three</s>\n");
  write_tokenizer_json(folder / "tokenizer.json");
  auto options = options_in(folder);
  {
    const LogCapture log;
    CHECK(made(options).train.documents == 2);
    CHECK_THAT(log.text(),
               Catch::Contains("in 2 places") && Catch::Contains("--special-tokens tokens"));
  }
  CHECK(decoded(options) == "one</s>two\n<end>three</s>\n<end>");
  options.special_tokens = SpecialTokens::kTokens;
  {
    const LogCapture log;
    made(options);
    CHECK(log.text() == "");
  }
  CHECK(decoded(options) == "one<end>two\n<end>three<end>\n<end>");
}

TEST_CASE("an end token that the user names is no name in a text") {
  TemporaryFolder folder;
  make_folder(folder / "text");
  write_file(folder / "text/a.txt", "one two\n");
  write_tokenizer_json(folder / "tokenizer.json");
  auto options = options_in(folder);
  options.end_token = "</s>";
  const LogCapture log;
  made(options);
  CHECK(log.text() == "");
}

TEST_CASE("an end token that texts have anyway is told") {
  TemporaryFolder folder;
  make_folder(folder / "text");
  write_file(folder / "text/a.txt", "one two\n");
  write_tokenizer_json(folder / "tokenizer.json");
  auto options = options_in(folder);
  options.end_token = "w";
  const LogCapture log;
  made(options);
  CHECK_THAT(log.text(), Catch::Contains("the end token 'w' is a part of the vocabulary"));
}

TEST_CASE("names become tokens by a tokenizer.json only") {
  TemporaryFolder folder;
  make_folder(folder / "text");
  write_file(folder / "text/a.txt", sample_text(20000, 1));
  auto options = options_in(folder);
  options.tokenizer.clear();
  options.train_vocabulary = 300;
  options.special_tokens = SpecialTokens::kTokens;
  CHECK_THROWS_WITH(made(options), Catch::StartsWith("--special-tokens"));
  options.special_tokens = SpecialTokens::kText;
  made(options);
  options.tokenizer = options.output;
  options.output += "2";
  options.train_vocabulary = 0;
  options.special_tokens = SpecialTokens::kTokens;
  CHECK_THROWS_WITH(made(options), Catch::Contains("tokenizer.model is a SentencePiece model"));
  CHECK_THROWS_AS(made(options), ConfigError);
}

}  // namespace farstep
