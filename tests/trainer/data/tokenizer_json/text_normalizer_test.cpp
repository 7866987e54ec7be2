#include "trainer/data/tokenizer_json/text_normalizer.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

TextNormalizer parsed(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return TextNormalizer(JsonValue(json, "normalizer"));
}

}  // namespace

TEST_CASE("the steps of a normalizer follow each other") {
  CHECK(parsed("null").is_identity());
  CHECK(parsed(R"({"type": "Sequence", "normalizers": []})").is_identity());
  const auto steps = parsed(R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
      {"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": "  "}, "content": "-"}]})");
  CHECK(steps.prepends());
  CHECK(steps("e\u0301   x", true) == "_\u00e9- x");
  CHECK(steps("a    ", false) == "a--");
  CHECK(steps("", true).empty());
}

TEST_CASE("white space is stripped at the ends, and matches are replaced") {
  const auto spaces = parsed(
      R"({"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": false, "strip_right": true},
      {"type": "Replace", "pattern": {"Regex": "\\A +| {2,}|x*\\z"}, "content": "-"}]})");
  CHECK(spaces("  a b   cxx \n\u3000", true) == "-a b-c-");
  CHECK_FALSE(spaces.may_cut());
  CHECK(parsed(R"({"type": "Strip"})")(" \t a ", true) == "a");
  CHECK(parsed(R"({"type": "Strip"})")(" ", true).empty());
  CHECK(parsed(R"({"type": "Prepend", "prepend": "_"})").may_cut());
  CHECK_FALSE(parsed(R"({"type": "NFC"})").may_cut());
}

TEST_CASE("other normalizers are refused by name") {
  for (const auto* name : {"Lowercase", "StripAccents", "BertNormalizer", "ByteLevel"}) {
    CHECK_THROWS_WITH(parsed(fmt::format(R"({{"type": "{}"}})", name)),
                      Catch::Contains(fmt::format("normalizer: the normalizer {} is not", name)));
  }
  CHECK_THROWS_WITH(parsed(R"({"type": "Replace", "pattern": {"Regex": "\\w"}, "content": "b"})"),
                    Catch::Contains("normalizer.pattern: the regular expression"));
  for (const auto* table : {"a", "a===", "AAAA", "/////w=="}) {
    CHECK_THROWS_WITH(
        parsed(fmt::format(R"({{"type": "Precompiled", "precompiled_charsmap": "{}"}})", table)),
        Catch::StartsWith("normalizer.precompiled_charsmap: "));
  }
  CHECK_THROWS_AS(parsed(R"({"type": "Replace", "pattern": {"String": ""}, "content": "b"})"),
                  DataError);
}

}  // namespace farstep
