#include "trainer/data/tokenizer_json/pre_tokenizer.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

PreTokenizer parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return PreTokenizer(JsonValue(json, "pre_tokenizer"));
}

std::vector<std::string> words_of(const std::string& json, const std::string& text,
                                  bool begins_text = true) {
  Words words;
  parsed(json).split(text, begins_text, words);
  return {words.words.begin(), words.words.end()};
}

using Texts = std::vector<std::string>;

std::string split_json(const std::string& behavior, bool invert) {
  return nlohmann::json{
      {"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", behavior}, {"invert", invert}}
      .dump();
}

}  // namespace

TEST_CASE("the behaviours of Split are those that its documents show") {
  // The example of Hugging Face's reference.
  const std::string text = "the-final--countdown";
  CHECK(words_of(split_json("Removed", false), text) == Texts{"the", "final", "countdown"});
  CHECK(words_of(split_json("Isolated", false), text) ==
        Texts{"the", "-", "final", "-", "-", "countdown"});
  CHECK(words_of(split_json("MergedWithPrevious", false), text) ==
        Texts{"the-", "final-", "-", "countdown"});
  CHECK(words_of(split_json("MergedWithNext", false), text) ==
        Texts{"the", "-final", "-", "-countdown"});
  CHECK(words_of(split_json("Contiguous", false), text) ==
        Texts{"the", "-", "final", "--", "countdown"});
  CHECK(words_of(split_json("Removed", true), text) == Texts{"-", "-", "-"});
}

TEST_CASE("spaces begin words of Metaspace") {
  const std::string json =
      R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})";
  CHECK(words_of(json, "a  b c") == Texts{"_a", "_", "_b", "_c"});
  CHECK(words_of(json, "a b", false) == Texts{"a", "_b"});
  CHECK(words_of(json, " a") == Texts{"_a"});
}

TEST_CASE("a text is cut only by expressions that are known to allow it") {
  const std::string bytes =
      R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})";
  const auto sequence = [&](const std::string& first) {
    return R"({"type": "Sequence", "pretokenizers": [)" + first + "," + bytes + "]}";
  };
  CHECK(parsed(R"({"type": "ByteLevel"})").may_cut());
  CHECK_FALSE(parsed(bytes).may_cut());
  CHECK_FALSE(parsed(sequence(R"({"type": "Digits", "individual_digits": true})")).may_cut());
  CHECK_FALSE(parsed(sequence(split_json("Isolated", false))).may_cut());
}

TEST_CASE("a text of characters is cut where only digits and single characters are looked for") {
  CHECK(parsed("null").may_cut());
  CHECK(parsed(R"({"type": "Metaspace", "replacement": "_"})").may_cut());
  CHECK(parsed(R"({"type": "Digits", "individual_digits": false})").may_cut());
  const auto split = [](const std::string& pattern) {
    return R"({"type": "Split", "behavior": "MergedWithPrevious", "pattern": {)" + pattern + "}}";
  };
  CHECK(parsed(split(R"("String": "\u2581")")).may_cut());
  CHECK_FALSE(parsed(split(R"("String": "a ")")).may_cut());
  CHECK_FALSE(parsed(split(R"("Regex": " ")")).may_cut());
}

TEST_CASE("what is not supported is refused by name and place") {
  const auto refused = [](const std::string& json, const std::string& part) {
    INFO(json);
    CHECK_THROWS_AS(parsed(json), DataError);
    CHECK_THROWS_WITH(parsed(json), Catch::Contains(part));
  };
  refused(R"({"type": "Whitespace"})", "pre_tokenizer: the pre-tokenizer Whitespace is not");
  refused(
      R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Punctuation"}]})",
      "pretokenizers[0]: ByteLevel is supported at the end");
  refused(R"({"type": "Split", "behavior": "Other", "pattern": {"Regex": "a"}})", "Other");
  refused(R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "\\h"}})", "\\h");
  refused(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "x"})", "prepend_scheme");
  refused(R"({"type": 3})", "pre_tokenizer.type: must be a string");
  refused("[]", "must be an object");
  std::string nested = R"({"type": "ByteLevel"})";
  for (int i = 0; i < 10; ++i) {
    nested = R"({"type": "Sequence", "pretokenizers": [)" + nested + "]}";
  }
  refused(nested, "too many sequences");
}

}  // namespace farstep
