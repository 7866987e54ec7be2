#include "trainer/data/tokenizer_json/added_tokens.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

AddedTokens parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text), none = nlohmann::json();
  return {JsonValue(json, "added_tokens"), TextNormalizer(JsonValue(none, "normalizer"))};
}

// The parts, with tokens in brackets.
std::string parts_of(const AddedTokens& tokens, const std::string& text) {
  std::vector<TextPart> parts;
  tokens.split(text, false, parts);
  std::string all;
  for (const auto& part : parts) {
    all += part.token < 0 ? std::string(part.text) : "[" + std::string(part.text) + "]";
  }
  return all;
}

}  // namespace

TEST_CASE("tokens take white space, and leave words whole, as their flags say") {
  const auto tokens = parsed(R"([{"id": 1, "content": "<l>", "lstrip": true, "special": true},
      {"id": 2, "content": "<r>", "rstrip": true, "special": true},
      {"id": 3, "content": "one", "single_word": true, "special": true},
      {"id": 4, "content": "n", "normalized": true, "special": true}])");
  CHECK(parts_of(tokens, "a \n<l> b <r>\t\u3000c") == "a[ \n<l>] b [<r>\t\u3000]c");
  CHECK(parts_of(tokens, "one ones aone one") == "[one] ones aone [one]");
  CHECK(parts_of(tokens, "\u00e9one one\u0301 -one-") == "\u00e9one one\u0301 -[one]-");
  CHECK(parts_of(tokens, "<r>  <l>") == "[<r>  ][<l>]");
  CHECK(parts_of(tokens, "").empty());
}

TEST_CASE("tokens that reach over a space between words forbid cuts there") {
  const auto may_cut = [](const std::string& token) {
    return parsed(R"([{"id": 1, "special": true, )" + token + "}]").may_cut();
  };
  CHECK(may_cut(R"("content": "<|end|>")"));
  CHECK(may_cut(R"("content": "   ", "lstrip": true)"));
  CHECK_FALSE(may_cut(R"("content": "two words")"));
  CHECK_FALSE(may_cut(R"("content": "\u00e9\n")"));
  CHECK_FALSE(may_cut(R"("content": "tok", "rstrip": true)"));
  CHECK_FALSE(may_cut(R"("content": " x", "single_word": true)"));
}

TEST_CASE("tokens of the normalised text forbid cuts at what a space becomes") {
  const auto normalizer =
      nlohmann::json::parse(R"({"type": "Replace", "pattern": {"String": " "}, "content": "_"})");
  const auto may_cut = [&](const std::string& token) {
    const auto json = nlohmann::json::parse(R"([{"id": 1, "normalized": true, )" + token + "}]");
    return AddedTokens(JsonValue(json, "added_tokens"),
                       TextNormalizer(JsonValue(normalizer, "normalizer")))
        .may_cut();
  };
  CHECK(may_cut(R"("content": "_token")"));
  CHECK_FALSE(may_cut(R"("content": "two words")"));
  CHECK_FALSE(may_cut(R"("content": "two_words")"));
  // What follows it is a part of a word, unless the text is cut there.
  CHECK_FALSE(may_cut(R"("content": "word", "single_word": true)"));
}

TEST_CASE("an entry with a wrong member is refused with its place") {
  CHECK_THROWS_WITH(parsed(R"([{"id": -1, "content": "x"}])"),
                    Catch::Contains("added_tokens[0].id"));
  CHECK_THROWS_WITH(parsed(R"([{"id": 1, "content": "x", "lstrip": 1}])"),
                    Catch::Contains("added_tokens[0].lstrip: must be true or false"));
  CHECK_THROWS_AS(parsed("{}"), DataError);
}

}  // namespace farstep
