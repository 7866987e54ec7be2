#include "trainer/data/tokens/token_dataset.h"

#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/data/tokens/counting.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/token_batch.h"

namespace farstep {

namespace {

// Writes 0, 1, 2, ... in shards of `shard_tokens`.
void write_split(const std::filesystem::path& folder, std::string_view split, int32_t count,
                 int64_t shard_tokens, int64_t vocabulary = 1000) {
  SplitWriter writer(folder, split, vocabulary, 2, shard_tokens);
  writer.append(counting(count), 1, count);
  writer.finish();
}

}  // namespace

TEST_CASE("a split reads as one stream wherever its shards end") {
  for (const int64_t shard_tokens : {13, 50, 99, 100, 101}) {
    TemporaryFolder folder;
    write_split(folder.path(), kTrainSplit, 100, shard_tokens);
    const TokenDataset dataset(folder.path(), kTrainSplit);
    REQUIRE(dataset.num_tokens() == 100);
    CHECK(dataset.vocabulary() == 1000);
    CHECK(dataset.eos() == 2);
    for (const int64_t offset : {0, 1, 12, 13, 50, 98, 99, 100}) {
      for (const int64_t count : {0, 1, 2, 30, 100}) {
        std::vector<int64_t> out(static_cast<std::size_t>(count));
        if (offset + count > 100) {
          CHECK_THROWS_AS(dataset.read(offset, out), InternalError);
          continue;
        }
        dataset.read(offset, out);
        std::vector<int64_t> expected(out.size());
        std::iota(expected.begin(), expected.end(), offset);
        CHECK(out == expected);
      }
    }
  }
}

TEST_CASE("a folder is asked for the splits that it has") {
  TemporaryFolder folder;
  write_split(folder.path(), kTrainSplit, 10, 100);
  CHECK(TokenDataset::has_split(folder.path(), kTrainSplit));
  CHECK_FALSE(TokenDataset::has_split(folder.path(), kValidationSplit));
  CHECK_THROWS_AS(TokenDataset::has_split(folder.path() / "no", kTrainSplit), DataError);
}

TEST_CASE("a window needs its inputs and one more target") {
  TemporaryFolder folder;
  write_split(folder.path(), kValidationSplit, 100, 1000);
  const TokenDataset dataset(folder.path(), kValidationSplit);
  CHECK(dataset.num_windows(1) == 99);
  CHECK(dataset.num_windows(33) == 3);
  CHECK(dataset.num_windows(34) == 2);
  CHECK(dataset.num_windows(99) == 1);
  CHECK_THROWS_AS(dataset.num_windows(100), DataError);
}

TEST_CASE("the digest tells whether two sites hold the same shards") {
  TemporaryFolder a, b;
  write_split(a.path(), kTrainSplit, 100, 30);
  write_split(b.path(), kTrainSplit, 100, 30);
  const auto digest = TokenDataset(a.path(), kTrainSplit).digest();
  CHECK(TokenDataset(b.path(), kTrainSplit).digest() == digest);
  write_split(b.path(), kTrainSplit, 101, 30);
  CHECK(TokenDataset(b.path(), kTrainSplit).digest() != digest);
  write_split(b.path(), kTrainSplit, 100, 30, 1001);
  CHECK(TokenDataset(b.path(), kTrainSplit).digest() != digest);
}

TEST_CASE("a dataset that is missing or incomplete is refused with the way to mend it") {
  TemporaryFolder folder;
  const auto text = folder / "text.jsonl";
  write_file_durably(text, "{}\n");
  CHECK_THROWS_WITH(TokenDataset(text, kTrainSplit),
                    Catch::Contains("a file, not a dataset folder") &&
                        Catch::Contains("tokenize " + text.string() + " --output FOLDER"));
  std::filesystem::remove(text);
  CHECK_THROWS_WITH(TokenDataset(folder / "nowhere", kTrainSplit),
                    Catch::Contains("nowhere") && Catch::Contains("farstep tokenize"));
  write_split(folder.path(), kTrainSplit, 100, 30);
  CHECK_THROWS_WITH(TokenDataset(folder.path(), kValidationSplit),
                    Catch::Contains("validation") && Catch::Contains("farstep tokenize"));

  SECTION("a shard in the middle is gone") {
    std::filesystem::remove(folder / "train-00001.tokens");
    CHECK_THROWS_WITH(TokenDataset(folder.path(), kTrainSplit),
                      Catch::Contains("train-00001.tokens is missing"));
  }
  SECTION("a shard is of another vocabulary") {
    TemporaryFolder other;
    write_split(other.path(), kTrainSplit, 60, 30, 70000);
    std::filesystem::copy_file(other / "train-00001.tokens", folder / "train-00001.tokens",
                               std::filesystem::copy_options::overwrite_existing);
    CHECK_THROWS_WITH(TokenDataset(folder.path(), kTrainSplit),
                      Catch::Contains("train-00001.tokens") && Catch::Contains("70000"));
  }
  SECTION("a shard is corrupt") {
    auto content = read_file(folder / "train-00002.tokens");
    content.back() ^= 1;
    write_file_durably(folder / "train-00002.tokens", content);
    CHECK_THROWS_AS(TokenDataset(folder.path(), kTrainSplit), DataError);
  }
}

TEST_CASE("several folders are one mixture if one tokenizer made them") {
  TemporaryFolder code, web;
  for (const auto split : {kTrainSplit, kValidationSplit}) {
    write_split(code.path(), split, 100, 30);
    write_split(web.path(), split, 200, 1000);
  }
  const auto mixed = [&](double code_weight, double web_weight) {
    return TokenData({{.folder = code.path().string(), .weight = code_weight},
                      {.folder = web.path().string(), .weight = web_weight}});
  };
  const auto data = mixed(0.25, 0.75);
  CHECK(data.vocabulary() == 1000);
  CHECK(data.validates());
  CHECK(data.digest() == mixed(1, 3).digest());
  CHECK(data.digest() != mixed(1, 2).digest());
  CHECK(data.digest() != mixed(0.75, 0.25).digest());
  CHECK(TokenData(code.path()).digest() == TokenSource({.folder = code.path().string()}).digest());

  SECTION("windows of training") {
    const TokenWindows windows(
        {{&data.sources[0].training, 0.25}, {&data.sources[1].training, 0.75}}, 10, false);
    CHECK(windows.size() == 9 + 19);
    const auto sources = windows.sources();
    CHECK((sources.at(0).size == 9 && sources.at(1).size == 19 && sources.at(1).weight == 0.75));
    const std::vector<int64_t> numbers = {8, 9, 27};
    const auto batch = std::static_pointer_cast<const TokenBatch>(windows.read(numbers).memory);
    CHECK(batch->tokens.at(0) == 80);
    CHECK(batch->tokens.at(11) == 0);
    CHECK(batch->tokens.at(22) == 180);
  }
  SECTION("windows of validation are in proportion, spread over each folder") {
    const TokenWindows windows(
        {{&data.sources[0].training, 0.25}, {&data.sources[1].training, 0.75}}, 10, true);
    CHECK(windows.size() == 25);
    CHECK(windows.sources().at(0).size == 6);
    std::vector<int64_t> numbers(25);
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto batch = std::static_pointer_cast<const TokenBatch>(windows.read(numbers).memory);
    std::vector<int64_t> first;
    for (std::size_t row = 0; row < 25; ++row) first.push_back(batch->tokens.at(row * 11) / 10);
    CHECK(std::vector(first.begin(), first.begin() + 6) == std::vector<int64_t>{0, 1, 3, 4, 6, 7});
    for (int64_t i = 0; i < 19; ++i) CHECK(first.at(6 + static_cast<std::size_t>(i)) == i);
  }
  SECTION("a folder without validation") {
    std::filesystem::remove(web / "validation-00000.tokens");
    CHECK_FALSE(mixed(1, 1).validates());
  }
  SECTION("a folder of another vocabulary") {
    TemporaryFolder other;
    write_split(other.path(), kTrainSplit, 100, 30, 1001);
    CHECK_THROWS_WITH(
        TokenData({{.folder = code.path().string()}, {.folder = other.path().string()}}),
        Catch::Contains(other.path().string() + ": was not made by the tokenizer of " +
                        code.path().string()) &&
            Catch::Contains("vocabulary 1001"));
  }
  SECTION("a folder of another tokenizer") {
    write_file_durably(code / "tokenizer.model", "one");
    CHECK(mixed(1, 1).sources.size() == 2);
    write_file_durably(web / "tokenizer.model", "one");
    CHECK(mixed(1, 1).sources.size() == 2);
    write_file_durably(web / "tokenizer.model", "two");
    CHECK_THROWS_WITH(mixed(1, 1), Catch::Contains("the files of the tokenizers differ"));
  }
}

}  // namespace farstep
