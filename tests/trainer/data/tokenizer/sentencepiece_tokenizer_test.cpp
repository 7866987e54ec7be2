#include "trainer/data/tokenizer/tokenizer.h"

#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/train_tokenizer.h"

namespace farstep {

using namespace std::string_literals;

namespace {

void train_on(const std::string& text, int64_t vocabulary, const std::filesystem::path& out) {
  std::istringstream lines(text);
  train_tokenizer(
      [&]() -> std::optional<std::string> {
        std::string line;
        if (!std::getline(lines, line)) return std::nullopt;
        return line;
      },
      vocabulary, out);
}

}  // namespace

TEST_CASE("decoding undoes encoding") {
  TemporaryFolder folder;
  const auto text = sample_text(20000, 1);
  train_on(text, 400, folder / "model");
  const auto tokenizer = Tokenizer::load(folder / "model");
  CHECK(tokenizer->vocabulary() == 400);
  CHECK(tokenizer->eos() == 2);
  const std::string samples[] = {"",
                                 " ",
                                 "\n",
                                 "\n\n\n",
                                 " begins with a space",
                                 "ends with one ",
                                 "two  spaces,   three, and    four",
                                 "    indented\n\t\tby tabs\n",
                                 "windows\r\nlines\r\n",
                                 "CHAPTER I\n\n\nEmma Woodhouse, handsome, clever--and rich.\n",
                                 "<s> </s> <unk> <0x41> are text here",
                                 "caf\u00e9 \u4e2d\u6587 \U0001F600 \u00a0\u2028",
                                 std::string("a\0b", 3),
                                 text};
  for (const auto& sample : samples) {
    INFO(sample);
    const auto ids = tokenizer->encode(sample);
    CHECK(tokenizer->decode(ids) == sample);
    for (const auto id : ids) CHECK((id > 2 && id < 400));
  }
  CHECK(tokenizer->encode(text).size() * 2 < text.size());
}

TEST_CASE("text cut at a line end encodes as it does in one piece") {
  TemporaryFolder folder;
  const auto text = sample_text(20000, 1);
  train_on(text, 400, folder / "model");
  const auto tokenizer = Tokenizer::load(folder / "model");
  const auto whole = tokenizer->encode(text);
  for (const std::size_t place : {std::size_t{1}, std::size_t{700}, text.size() / 2}) {
    const auto cut = text.find('\n', place) + 1;
    auto pieces = tokenizer->encode(text.substr(0, cut));
    const auto rest = tokenizer->encode(text.substr(cut));
    pieces.insert(pieces.end(), rest.begin(), rest.end());
    CHECK(pieces == whole);
  }
}

TEST_CASE("eos has no text") {
  TemporaryFolder folder;
  train_on(sample_text(20000, 1), 300, folder / "model");
  const auto tokenizer = Tokenizer::load(folder / "model");
  auto ids = tokenizer->encode("one");
  ids.push_back(tokenizer->eos());
  CHECK(tokenizer->decode(ids) == "one");
  CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{300}), InternalError);
  CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{-1}), InternalError);
}

TEST_CASE("the same text trains the same model") {
  TemporaryFolder folder;
  train_on(sample_text(30000, 2), 350, folder / "a");
  train_on(sample_text(30000, 2), 350, folder / "b");
  CHECK(read_file(folder / "a") == read_file(folder / "b"));
}

TEST_CASE("a vocabulary that the text does not give is refused") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(train_on("a few words only\n", 5000, folder / "a"), DataError);
  CHECK_THROWS_AS(train_on(sample_text(5000, 1), 100, folder / "a"), DataError);
  CHECK_THROWS_AS(train_on("", 300, folder / "a"), DataError);
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_CASE("a file that is no model is refused with its name") {
  TemporaryFolder folder;
  write_file(folder / "model", "this is no SentencePiece model");
  CHECK_THROWS_WITH(Tokenizer::load(folder / "model"),
                    Catch::Contains((folder / "model").string()));
  write_file(folder / "empty", "");
  CHECK_THROWS_AS(Tokenizer::load(folder / "empty"), DataError);
  CHECK_THROWS_AS(Tokenizer::load(folder / "missing"), DataError);
}

TEST_CASE("a model whose begin token is in the text is called damaged") {
  TemporaryFolder folder;
  auto content = read_file(source_folder() / "tests/golden/tokenizers/prefix.model");
  content.replace(content.find("<s>"), 3, "\ufffd");
  write_file(folder / "model", content);
  const auto tokenizer = Tokenizer::load(folder / "model");
  CHECK_FALSE(tokenizer->encode("a day").empty());
  CHECK_THROWS_AS(tokenizer->encode("a day \xff"), DataError);
}

TEST_CASE("a model with an empty piece is refused") {
  TemporaryFolder folder;
  // Pieces in protobuf: "<unk>" of the type unknown, then "" of the type normal.
  write_file(folder / "model", "\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x02\x0a\x00"s);
  REQUIRE_THROWS_AS(Tokenizer::load(folder / "model"), DataError);
}

}  // namespace farstep
