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

TEST_CASE("other normalizers are refused by name") {
  for (const auto* name :
       {"Lowercase", "StripAccents", "BertNormalizer", "Precompiled", "ByteLevel"}) {
    CHECK_THROWS_WITH(parsed(fmt::format(R"({{"type": "{}"}})", name)),
                      Catch::Contains(fmt::format("normalizer: the normalizer {} is not", name)));
  }
  CHECK_THROWS_WITH(parsed(R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})"),
                    Catch::Contains("Replace of a regular expression"));
  CHECK_THROWS_AS(parsed(R"({"type": "Replace", "pattern": {"String": ""}, "content": "b"})"),
                  DataError);
}

}  // namespace farstep
