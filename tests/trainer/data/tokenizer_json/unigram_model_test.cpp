#include "trainer/data/tokenizer_json/unigram_model.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

UnigramModel unigram(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return UnigramModel(JsonValue(json, "model"));
}

}  // namespace

TEST_CASE("pieces, scores and the unknown id are read") {
  const auto model = unigram(
      R"({"vocab": [["<unk>", 0], ["a", -1.5], ["b", -3]], "unk_id": 0, "byte_fallback": true})");
  REQUIRE(model.pieces.size() == 3);
  CHECK(model.pieces[1].text == "a");
  CHECK(model.pieces[1].score == -1.5);
  CHECK(model.unknown == 0);
  CHECK(model.byte_fallback);
  CHECK(model.unknown_score() == -13);
  CHECK_FALSE(unigram(R"({"vocab": [["a", 1]], "unk_id": null})").unknown);
}

TEST_CASE("a Unigram model with a fault is refused with its place") {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "model.vocab: must be an array"},
           {R"({"vocab": []})", "model.vocab: must have a piece"},
           {R"({"vocab": [["a"]]})", "model.vocab[0]: must be a piece and its score"},
           {R"({"vocab": [["a", -1], ["b", "c"]]})", "model.vocab[1][1]: must be a number"},
           {R"({"vocab": [[1, -1]]})", "model.vocab[0][0]: must be a string"},
           {R"({"vocab": [["a", -1]], "unk_id": 1})", "model.unk_id: is no id"}}) {
    INFO(text);
    CHECK_THROWS_AS(unigram(text), DataError);
    CHECK_THROWS_WITH(unigram(text), Catch::StartsWith(message));
  }
}

}  // namespace farstep
