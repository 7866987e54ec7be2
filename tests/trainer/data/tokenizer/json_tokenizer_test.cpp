#include "trainer/data/tokenizer/json_tokenizer.h"

#include <future>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer_json/byte_words.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;

// A tokenizer of bytes with the merges "th" and "the".
FileJson small_file() {
  FileJson vocabulary;
  for (char32_t c = 0; c < 0x144; ++c) {
    std::string token;
    append_character(token, c);
    // Only characters that stand for a byte have another text, or are printable.
    const auto bytes = bytes_of_token(token);
    if (bytes != token || (c > 0x20 && c < 0x7f)) vocabulary[token] = vocabulary.size();
  }
  vocabulary["th"] = 500;
  vocabulary["the"] = 501;
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"t h", "th e"}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"added_tokens", {{{"id", 510}, {"content", "<|endoftext|>"}, {"special", true}}}}};
}

void refuse(const TemporaryFolder& folder, const FileJson& file, const std::string& part) {
  write_file(folder / "tokenizer.json", file.dump());
  INFO(part);
  CHECK_THROWS_AS(Tokenizer::load(folder / "tokenizer.json"), DataError);
  CHECK_THROWS_WITH(Tokenizer::load(folder / "tokenizer.json"),
                    Catch::Contains((folder / "tokenizer.json").string()) && Catch::Contains(part));
}

}  // namespace

TEST_CASE("invalid bytes become U+FFFD, and decoding gives valid text") {
  TemporaryFolder folder;
  write_file(folder / "tokenizer.json", small_file().dump());
  const auto tokenizer = Tokenizer::load(folder.path());
  CHECK(tokenizer->vocabulary() == 511);
  CHECK(tokenizer->eos() == 510);
  CHECK_FALSE(tokenizer->bos());
  CHECK(tokenizer->encode("the\xff") == tokenizer->encode("the\ufffd"));
  CHECK(tokenizer->decode(tokenizer->encode("the caf\u00e9")) == "the caf\u00e9");
  auto ids = tokenizer->encode("\u00e9");
  REQUIRE(ids.size() == 2);
  ids.pop_back();
  CHECK(tokenizer->decode(ids) == "\ufffd");
  CHECK(tokenizer->decode(std::vector<int32_t>{501, 510}) == "the");
  CHECK(tokenizer->decode(std::vector<int32_t>{505}).empty());  // an id that no token has
  CHECK_THROWS_AS(tokenizer->decode(std::vector<int32_t>{511}), InternalError);
}

TEST_CASE("the end token is what the user says, or the file beside it, or a usual one") {
  TemporaryFolder folder;
  auto file = small_file();
  file["added_tokens"].push_back({{"id", 511}, {"content", "<|im_end|>"}, {"special", true}});
  write_file(folder / "tokenizer.json", file.dump());
  CHECK(Tokenizer::load(folder.path())->eos() == 510);
  CHECK(Tokenizer::load(folder.path(), "the")->eos() == 501);
  CHECK_THROWS_WITH(Tokenizer::load(folder.path(), "<none>"),
                    Catch::Contains("no token '<none>'") && Catch::Contains("--end-token"));
  write_file(folder / "tokenizer_config.json",
             R"({"eos_token": {"content": "<|im_end|>"}, "bos_token": "th"})");
  CHECK(Tokenizer::load(folder.path())->eos() == 511);
  CHECK(Tokenizer::load(folder.path())->bos() == 500);
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "<gone>"})");
  CHECK_THROWS_WITH(Tokenizer::load(folder.path()), Catch::Contains("tokenizer_config.json names"));
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "<|im_end|>")");
  CHECK_THROWS_WITH(Tokenizer::load(folder.path()),
                    Catch::Contains("tokenizer_config.json: is no JSON"));
  std::filesystem::remove(folder / "tokenizer_config.json");
  file["added_tokens"] = FileJson::array();
  refuse(folder, file, "does not say which token ends a document");
}

TEST_CASE("a file that is broken or not supported is refused with its name and place") {
  TemporaryFolder folder;
  write_file(folder / "tokenizer.json", "{\"model\": ");
  CHECK_THROWS_WITH(Tokenizer::load(folder.path()), Catch::Contains("tokenizer.json: byte "));
  refuse(folder, {{"version", "1.0"}}, "no member \"model\"");
  auto file = small_file();
  file["model"]["type"] = "WordPiece";
  refuse(folder, file, "model: the model WordPiece");
  file = small_file();
  file["normalizer"] = {{"type", "Lowercase"}};
  refuse(folder, file, "normalizer: the normalizer Lowercase");
  file = small_file();
  file["added_tokens"][0]["content"] = "th";
  refuse(folder, file, "'th' has the id 510, but 500");
  file = small_file();
  file["added_tokens"][0]["id"] = 60'000'000;
  refuse(folder, file, "far beyond");
  file = small_file();
  file["pre_tokenizer"] = nullptr;
  file["model"]["byte_fallback"] = true;
  refuse(folder, file, "the vocabulary has no <0x00>");
}

TEST_CASE("many threads encode with one tokenizer") {
  TemporaryFolder folder;
  write_file(folder / "tokenizer.json", small_file().dump());
  const auto tokenizer = Tokenizer::load(folder.path());
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "the " + std::to_string(i % 300) + " th\u00e9\n";
  const auto expected = tokenizer->encode(text);
  std::vector<std::future<bool>> same;
  for (int i = 0; i < 4; ++i) {
    same.push_back(
        std::async(std::launch::async, [&] { return tokenizer->encode(text) == expected; }));
  }
  for (auto& each : same) CHECK(each.get());
}

}  // namespace farstep
