#include "trainer/data/tokens/tokenize.h"

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/trainer/data/tokens/small_corpus.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

namespace {

std::string without(std::string text, const std::string& part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part)) {
    text.erase(at, part.size());
  }
  return text;
}

}  // namespace

TEST_CASE("a dataset holds the corpus and each document ends in eos") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  const auto options = options_for(folder);
  double share = 0;
  int64_t bytes = 0, tokens = 0;
  const auto result = tokenize(options, [&](const TokenizeProgress& progress) {
    CHECK(progress.share >= share);
    CHECK_FALSE(progress.what.empty());
    share = progress.share;
    bytes = progress.bytes;
    tokens = progress.tokens;
  });
  CHECK(bytes == result.train.bytes + result.validation.bytes);
  CHECK(tokens == result.train.tokens + result.validation.tokens);
  CHECK(share == Approx(1));
  CHECK(result.vocabulary == 350);
  CHECK(result.files == 3);
  // The long text is cut, the short one is the 101st document.
  CHECK(result.train.documents == 95 + 1);
  CHECK(result.validation.documents == 5 + 1 + 1);

  const auto train = decoded(options.output, kTrainSplit);
  const auto validation = decoded(options.output, kValidationSplit);
  CHECK(static_cast<int64_t>(without(train, "<end>").size()) == result.train.bytes);
  CHECK(static_cast<int64_t>(without(validation, "<end>").size()) == result.validation.bytes);
  const auto short_text = read_file(folder / "text/short.txt");
  CHECK_THAT(train, Catch::Contains(sample_text(50, 0) + "<end>" + sample_text(60, 1) + "<end>"));
  CHECK_THAT(validation, Catch::Contains("<end>" + short_text + "<end>"));
  CHECK(result.train.tokens == TokenDataset(options.output, kTrainSplit).num_tokens());

  const auto facts = Json::parse(read_file(std::filesystem::path(options.output) / kDatasetFile));
  CHECK(facts["vocabulary"] == 350);
  CHECK(facts["eos"] == 2);
  CHECK(facts["splits"]["train"]["tokens"] == result.train.tokens);
  CHECK(facts["splits"]["validation"]["documents"] == 7);
  CHECK(facts["sources"].size() == 3);
}

TEST_CASE("the number of threads changes no byte") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  options.threads = 1;
  options.shard_tokens = 20000;
  tokenize(options, ignore_progress);
  const std::filesystem::path first = options.output;
  options.output = (folder / "other").string();
  options.threads = 5;
  tokenize(options, ignore_progress);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(first)) {
    ++files;
    INFO(entry.path().string());
    CHECK((read_file(entry.path()) == read_file(folder / "other" / entry.path().filename())));
  }
  CHECK(files > 5);
}

TEST_CASE("a trained model serves other texts") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  tokenize(options, ignore_progress);
  options.tokenizer = (folder / "set" / kTokenizerFile.data()).string();
  options.train_vocabulary = 0;
  options.output = (folder / "other").string();
  tokenize(options, ignore_progress);
  CHECK(TokenDataset(folder / "set", kTrainSplit).digest() ==
        TokenDataset(folder / "other", kTrainSplit).digest());
}

TEST_CASE("an older dataset stays when the new one fails") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  tokenize(options, ignore_progress);
  const auto digest = TokenDataset(options.output, kTrainSplit).digest();
  write_file(folder / "text/zz.jsonl", "{\"text\": \"fine\"}\n{\"text\": 3}\n");
  CHECK_THROWS_WITH(tokenize(options, ignore_progress), Catch::Contains("zz.jsonl: line 2"));
  CHECK(TokenDataset(options.output, kTrainSplit).digest() == digest);
  CHECK_FALSE(std::filesystem::exists(options.output + ".partial"));

  write_file(folder / "text/zz.jsonl", "{\"text\": \"fine\"}\n");
  tokenize(options, ignore_progress);
  CHECK(TokenDataset(options.output, kTrainSplit).digest() != digest);
}

TEST_CASE("options that do not fit together are refused") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  options.tokenizer = "also";
  CHECK_THROWS_AS(tokenize(options, ignore_progress), ConfigError);
  options = options_for(folder);
  options.train_vocabulary = 0;
  CHECK_THROWS_AS(tokenize(options, ignore_progress), ConfigError);
  options = options_for(folder);
  options.inputs.clear();
  CHECK_THROWS_AS(tokenize(options, ignore_progress), ConfigError);
}

TEST_CASE("a tokenizer that is none is named as the user named it") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  options.train_vocabulary = 0;
  options.tokenizer = (folder / "mine.json").string();
  write_file(options.tokenizer, "{}");
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::StartsWith(options.tokenizer + ": no tokenizer.json"));
  write_file(options.tokenizer, "text");
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::StartsWith(options.tokenizer + ": no tokenizer: "));
}

TEST_CASE("a tokenizer.json goes with the dataset, with the end token that was named") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  nlohmann::json vocabulary;
  for (char byte = 'a'; byte <= 'z'; ++byte) vocabulary[std::string(1, byte)] = vocabulary.size();
  for (const auto* token : {"\u0120", "\u010a", ",", "."}) vocabulary[token] = vocabulary.size();
  for (char byte = '0'; byte <= '9'; ++byte) vocabulary[std::string(1, byte)] = vocabulary.size();
  const nlohmann::json file = {
      {"model", {{"vocab", vocabulary}, {"merges", {"k a"}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"added_tokens", {{{"id", 40}, {"content", "<stop>"}, {"special", true}}}}};
  auto options = options_for(folder);
  options.train_vocabulary = 0;
  options.tokenizer = (folder / "mine.json").string();
  auto merged = file;
  merged["model"]["vocab"]["ka"] = 41;
  write_file(options.tokenizer, merged.dump());
  CHECK_THROWS_WITH(tokenize(options, ignore_progress), Catch::Contains("--end-token"));
  options.end_token = "<stop>";
  const auto result = tokenize(options, ignore_progress);
  CHECK(result.vocabulary == 42);
  CHECK(Tokenizer::load(options.output)->eos() == 40);
  CHECK_THAT(decoded(options.output, kTrainSplit),
             Catch::Contains(sample_text(50, 0) + "<end>" + sample_text(60, 1) + "<end>"));
}

TEST_CASE("token files of nanoGPT and llm.c become shards") {
  TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  tokenize(options, ignore_progress);
  options.tokenizer = options.output;
  options.output = (folder / "copied").string();
  options.train_vocabulary = 0;
  options.token_files = true;
  const auto bytes_of = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::vector<uint16_t> ids = {5, 6, 2, 7, 349, 2};
  const std::vector<uint32_t> wide = {8, 9, 2};
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = 6;
  make_folder(folder / "bin");
  write_file(folder / "bin/a.bin", bytes_of(ids));
  write_file(folder / "bin/b.bin", bytes_of(header) + bytes_of(ids));
  header[0] = 20240801;
  header[1] = 7;
  header[2] = 3;
  write_file(folder / "bin/c_val_000.bin", bytes_of(header) + bytes_of(wide));
  options.inputs = {(folder / "bin").string()};
  options.validation_fraction = 0;
  const auto result = tokenize(options, ignore_progress);
  CHECK(result.train.documents == 4);
  CHECK(all_tokens(TokenDataset(options.output, kTrainSplit)) ==
        std::vector<int64_t>{5, 6, 2, 7, 349, 2, 5, 6, 2, 7, 349, 2});
  CHECK(all_tokens(TokenDataset(options.output, kValidationSplit)) ==
        std::vector<int64_t>{8, 9, 2});

  write_file(folder / "bin/d.bin", bytes_of(std::vector<uint16_t>{1, 350}));
  CHECK_THROWS_WITH(tokenize(options, ignore_progress),
                    Catch::Contains("d.bin: byte 2: token id 350 is beyond"));
  write_file(folder / "bin/d.bin", "odd");
  CHECK_THROWS_WITH(tokenize(options, ignore_progress), Catch::Contains("odd number of bytes"));
  header[2] = 4;
  write_file(folder / "bin/d.bin", bytes_of(header) + bytes_of(wide));
  CHECK_THROWS_WITH(tokenize(options, ignore_progress), Catch::Contains("announces 4 tokens"));
}

// Enough text to be written before all is read, by one thread.
TokenizeOptions options_to_stop(const TemporaryFolder& folder) {
  write_corpus(folder / "text");
  write_file(folder / "text/longer.txt", sample_text(300'000, 3));
  auto options = options_for(folder);
  options.threads = 1;
  return options;
}

TEST_CASE("a dataset is replaced with force alone, and stays as it is without") {
  const TemporaryFolder folder;
  write_corpus(folder / "text");
  auto options = options_for(folder);
  options.force = false;
  tokenize(options, ignore_progress);
  const auto before = read_file(folder / "set" / "dataset.json");
  CHECK_THROWS_WITH(
      tokenize(options, ignore_progress),
      Catch::Contains("is a dataset already") && Catch::Contains("replace it with --force"));
  CHECK(read_file(folder / "set" / "dataset.json") == before);
  options.force = true;
  CHECK_NOTHROW(tokenize(options, ignore_progress));
}

TEST_CASE("a call that was stopped anywhere goes on, and the bytes are the same") {
  TemporaryFolder folder;
  auto options = options_to_stop(folder);
  write_file(folder / "text/faults.jsonl", "none\n{\"text\": \"ka mo ri\"}\nnone\n");
  options.shard_tokens = 7000;
  options.bad_text = BadText::kSkip;
  options.most_left_out = 0.1;
  options.output = (folder / "whole").string();
  const auto whole = tokenize(options, ignore_progress);
  REQUIRE(whole.skipped == 2);
  options.output = (folder / "set").string();
  for (const int64_t bytes : {1, 60'000, 120'000}) {
    // Twice: what goes on can be stopped too.
    for (const int64_t more : {0, 40'000}) {
      std::stop_source stop;
      const auto stops = [&](const TokenizeProgress& progress) {
        if (progress.bytes >= bytes + more) stop.request_stop();
      };
      INFO(bytes << " and " << more);
      CHECK_THROWS_AS(tokenize(options, stops, stop.get_token()), Stopped);
      CHECK(std::filesystem::exists(options.output + ".partial"));
    }
    LogCapture log;
    int64_t first_bytes = -1;
    const auto result = tokenize(options, [&](const TokenizeProgress& progress) {
      CHECK_FALSE(progress.trains);
      if (first_bytes < 0) first_bytes = progress.bytes;
    });
    CHECK(first_bytes >= bytes);
    CHECK_THAT(log.text(), Catch::Contains("goes on with"));
    CHECK(to_json(result.train) == to_json(whole.train));
    CHECK(result.skipped == 2);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "whole")) {
      const auto name = entry.path().filename();
      CHECK((read_file(entry.path()) == read_file(folder / "set" / name)));
    }
    CHECK(std::distance(std::filesystem::directory_iterator(folder / "set"), {}) ==
          std::distance(std::filesystem::directory_iterator(folder / "whole"), {}));
  }
}

TEST_CASE("a call with other inputs or settings begins anew, and says so") {
  TemporaryFolder folder;
  auto options = options_to_stop(folder);
  const auto stop_early = [&] {
    std::stop_source stop;
    const auto stops = [&](const TokenizeProgress& progress) {
      if (progress.bytes > 0) stop.request_stop();
    };
    CHECK_THROWS_AS(tokenize(options, stops, stop.get_token()), Stopped);
  };
  const auto said = [&] {
    LogCapture log;
    tokenize(options, ignore_progress);
    return log.text();
  };
  stop_early();
  options.shard_tokens = 5000;
  CHECK_THAT(said(), Catch::Contains("of other settings: begins anew"));
  stop_early();
  write_file(folder / "text/more.txt", sample_text(500, 3));
  CHECK_THAT(said(), Catch::Contains("of other inputs: begins anew"));
  stop_early();
  write_file(options.output + ".partial/tokenizer.model", "damaged");
  CHECK_THAT(said(), Catch::Contains("its tokenizer is damaged: begins anew"));
  stop_early();
  write_file(options.output + ".partial/unfinished.json", "{");
  CHECK_THAT(said(), Catch::Contains("unfinished.json cannot be read: begins anew"));
  stop_early();
  const std::filesystem::path state_file = options.output + ".partial/unfinished.json";
  auto state = Json::parse(read_file(state_file));
  state["done"]["files"] = -1;
  write_file(state_file, state.dump());
  CHECK_THAT(said(),
             Catch::Contains("unfinished.json: done.files") && Catch::Contains("begins anew"));
  std::filesystem::create_directory(options.output + ".partial");
  write_file(options.output + ".partial/train-00000.tokens", "old");
  CHECK_THAT(said(), Catch::Contains("nothing was saved of it: begins anew"));
  CHECK(said().empty());
}

}  // namespace farstep
