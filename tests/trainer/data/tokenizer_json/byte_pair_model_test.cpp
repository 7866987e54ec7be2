#include "trainer/data/tokenizer_json/byte_pair_model.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/data/tokenizer_json/byte_words.h"

namespace farstep {

namespace {

BytePairModel parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return BytePairModel(JsonValue(json, "model"));
}

}  // namespace

TEST_CASE("merges are read in both forms") {
  const std::string vocabulary = R"("vocab": {"a": 0, "b": 1, "ab": 2, "a b": 3, " b": 4})";
  const auto old = parsed("{" + vocabulary + R"(, "merges": ["a b"]})");
  REQUIRE(old.merges.size() == 1);
  CHECK(old.merges[0].merged == 2);
  const auto pairs = parsed("{" + vocabulary + R"(, "merges": [["a", "b"], ["a", " b"]]})");
  REQUIRE(pairs.merges.size() == 2);
  CHECK(pairs.merges[1].right == 4);
  CHECK(pairs.merges[1].merged == 3);
}

TEST_CASE("another model, and what is not supported of this one, is refused by name") {
  const auto refused = [](const std::string& json, const std::string& part) {
    INFO(json);
    CHECK_THROWS_WITH(parsed(json), Catch::Contains(part));
    CHECK_THROWS_AS(parsed(json), DataError);
  };
  refused(R"({"type": "WordPiece"})", "model: the model WordPiece is not supported");
  refused(R"({"type": "Unigram"})", "Unigram");
  refused(R"({"type": "BPE", "dropout": 0.1})", "model.dropout");
  refused(R"({"type": "BPE", "end_of_word_suffix": "</w>"})", "'</w>' is not supported");
  refused(R"({"type": "BPE", "vocab": [], "merges": []})", "model.vocab: must be an object");
  refused(R"({"vocab": {"a": "x"}, "merges": []})", "model.vocab.a: must be the id");
  refused(R"({"vocab": {"a": 1e20}, "merges": []})", "model.vocab.a");
  refused(R"({"vocab": {"a": 99999999999}, "merges": []})", "not below");
  refused(R"({"vocab": {"a": 0}, "merges": ["a a"]})", "model.merges[0]: 'aa' is not in the");
  refused(R"({"vocab": {"a": 0}, "merges": ["a"]})", "two tokens with a space");
  refused(R"({"vocab": {"a": 0}, "merges": [["a"]]})", "two tokens");
  refused(R"({"vocab": {"a": 0}, "merges": [], "unk_token": "u"})", "'u' is not in the vocabulary");
}

TEST_CASE("every byte is written as a character") {
  CHECK(bytes_of_token("Hello!") == "Hello!");
  CHECK(bytes_of_token("\u0120the\u010a") == " the\n");
  CHECK(bytes_of_token("\u00c3\u00a9") == "\u00e9");
  CHECK(bytes_of_token("\u0143") == "\xad");
  CHECK(bytes_of_token("\u4e2d") == "\u4e2d");
  CHECK(bytes_of_token("a b") == "a b");  // no byte is written as a space
}

TEST_CASE("a byte without a token is an error that names it, or the unknown") {
  const std::string json = R"({"vocab": {"a": 0, "?": 1}, "merges": [])";
  WordCache cache;
  std::vector<int32_t> ids;
  CHECK_THROWS_WITH(ByteWords(parsed(json + "}")).encode("ab", cache, ids),
                    Catch::Contains("0x62"));
  const auto encoded = [&](const std::string& flags) {
    WordCache fresh;
    std::vector<int32_t> result;
    ByteWords(parsed(json + flags + "}")).encode("abba", fresh, result);
    return result;
  };
  CHECK(encoded(R"(, "unk_token": "?")") == std::vector<int32_t>{0, 1, 1, 0});
  CHECK(encoded(R"(, "unk_token": "?", "fuse_unk": true)") == std::vector<int32_t>{0, 1, 0});
}

}  // namespace farstep
