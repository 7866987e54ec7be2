#include "trainer/data/tokenizer_json/text_frame.h"

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

using Ids = std::vector<int32_t>;

Ids before(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return ids_before_text(JsonValue(json, "post_processor"));
}

// A template with tokens of the ids 3 and 4 (`two`), and 9.
std::string of_template(const std::string& single) {
  return R"({"type": "TemplateProcessing", "single": [)" + single + R"(],
             "special_tokens": {"two": {"id": "two", "ids": [3, 4], "tokens": ["a", "b"]},
                                "one": {"id": "one", "ids": [9], "tokens": ["c"]}}})";
}

const std::string kOne = R"({"SpecialToken": {"id": "one", "type_id": 0}})";
const std::string kTwo = R"({"SpecialToken": {"id": "two", "type_id": 0}})";
const std::string kText = R"({"Sequence": {"id": "A", "type_id": 0}})";

}  // namespace

TEST_CASE("what a post-processor puts before a text, and not what it puts behind it") {
  CHECK(before("null").empty());
  CHECK(before(R"({"type": "ByteLevel"})").empty());
  CHECK(before(of_template(kText)).empty());
  CHECK(before(of_template(kTwo + "," + kOne + "," + kText + "," + kOne)) == Ids{3, 4, 9});
  CHECK(before(of_template(kText + "," + kTwo)).empty());
  for (const std::string type : {"BertProcessing", "RobertaProcessing"}) {
    CHECK(before(R"({"type": ")" + type + R"(", "sep": ["</s>", 2], "cls": ["<s>", 7]})") ==
          Ids{7});
  }
  // The outer step is the later one.
  CHECK(before(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )" +
               of_template(kOne + "," + kText) + "," + of_template(kTwo + "," + kText) + "]}") ==
        Ids{3, 4, 9});
}

TEST_CASE("a post-processor that is broken or not known is refused by its place") {
  CHECK_THROWS_WITH(before(R"({"type": "Other"})"),
                    Catch::Contains("post_processor: the post-processor Other"));
  CHECK_THROWS_WITH(before(R"({"type": "TemplateProcessing", "single": "$A"})"),
                    Catch::Contains("post_processor.single: must be an array"));
  const std::string unknown = R"({"SpecialToken": {"id": "none", "type_id": 0}})";
  CHECK_THROWS_WITH(before(of_template(unknown)),
                    Catch::Contains("special_tokens.none: must be an object"));
  CHECK_THROWS_WITH(before(R"({"type": "BertProcessing", "cls": ["<s>"]})"),
                    Catch::Contains("post_processor.cls"));
  std::string deep = "null";
  for (int i = 0; i < 100; ++i) deep = R"({"type": "Sequence", "processors": [)" + deep + "]}";
  CHECK_THROWS_WITH(before(deep), Catch::Contains("too many sequences"));
}

TEST_CASE("a tokenizer_config.json names tokens, and says whether bos goes before a text") {
  const auto read = [](const std::string& text) { return read_tokenizer_config(text, "c.json"); };
  CHECK_FALSE(read("").adds_bos);
  const auto config = read(R"({"eos_token": "x", "bos_token": {"content": "y"}})");
  CHECK(config.eos == "x");
  CHECK(config.bos == "y");
  CHECK_FALSE(config.names_class);
  CHECK_FALSE(config.adds_bos);
  CHECK(read(R"({"add_bos_token": true})").adds_bos == true);
  CHECK(read(R"({"tokenizer_class": "LlamaTokenizer"})").adds_bos == true);
  CHECK(read(R"({"tokenizer_class": "GemmaTokenizerFast"})").adds_bos == true);
  CHECK_FALSE(read(R"({"tokenizer_class": "PreTrainedTokenizerFast"})").adds_bos);
  CHECK(read(R"({"tokenizer_class": "PreTrainedTokenizerFast"})").names_class);
  CHECK(read(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})").adds_bos == false);
  CHECK_FALSE(read(R"({"eos_token": null, "add_bos_token": null})").adds_bos);
  CHECK_THROWS_WITH(read("[]"), Catch::Contains("c.json: is no JSON object"));
  CHECK_THROWS_AS(read("{"), DataError);
}

}  // namespace farstep
