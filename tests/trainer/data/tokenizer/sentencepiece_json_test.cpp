#include "trainer/data/tokenizer/sentencepiece_json.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/train_tokenizer.h"
#include "trainer/data/tokens/text_source.h"

namespace farstep {

namespace {

std::filesystem::path golden_models() {
  return source_folder() / "tests/golden/tokenizers";
}

std::vector<std::string> hard_texts() {
  static const auto kReference =
      nlohmann::json::parse(TextSource(golden_models() / "reference.json.gz").next()->text);
  return kReference["cases"].get<std::vector<std::string>>();
}

// In a tokenizer.json the names of control pieces become these pieces.
bool names_a_control_piece(const std::string& text) {
  for (const char* name : {"<unk>", "<s>", "</s>"}) {
    if (text.find(name) != text.npos) return true;
  }
  return false;
}

void check_same_ids(const Tokenizer& model, const Tokenizer& made, const std::string& text) {
  if (names_a_control_piece(text)) return;
  INFO(text);
  const auto ids = model.encode(text);
  CHECK(made.encode(text) == ids);
  CHECK(made.decode(ids) == model.decode(ids));
}

// Letters of which pieces are made, in runs and with white space.
std::string mixed_text(std::mt19937& random) {
  static const std::string kParts[] = {"a",      "aa", "e",  "ee",  "th",        " ",
                                       "  ",     "\n", "\t", "the", "0",         "\u00e9",
                                       "\u2581", ".",  "s",  "ss",  "\U0001F600"};
  std::string text;
  for (auto parts = random() % 40; parts > 0; --parts) text += kParts[random() % std::size(kParts)];
  return text;
}

// A ModelProto in protobuf, of pieces without scores.
std::string with_piece(std::string model, const std::string& text, float score, char type) {
  std::string piece = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x15";
  piece.append(reinterpret_cast<const char*>(&score), sizeof score);
  piece += std::string("\x18") + type;
  return model + "\x0a" + std::string(1, static_cast<char>(piece.size())) + piece;
}

}  // namespace

TEST_CASE("a tokenizer.json that is made of a model has the model's ids and texts") {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  for (const char* name : {"bytes", "prefix"}) {
    INFO(name);
    const auto file = golden_models() / (std::string(name) + ".model");
    const auto made = make_tokenizer_json(read_file(file), "");
    REQUIRE(made.reason.empty());
    write_file(folder / "tokenizer.json", made.content);
    const auto model = Tokenizer::load(file);
    const auto tokenizer = Tokenizer::load(folder / "tokenizer.json");
    CHECK(tokenizer->vocabulary() == model->vocabulary());
    CHECK(tokenizer->eos() == model->eos());
    CHECK(tokenizer->bos() == model->bos());
    for (const auto& text : hard_texts()) check_same_ids(*model, *tokenizer, text);
    for (int i = 0; i < 3000; ++i) check_same_ids(*model, *tokenizer, mixed_text(random));
  }
}

TEST_CASE("a vocabulary of our own becomes a tokenizer.json") {
  const TemporaryFolder folder;
  std::istringstream lines(sample_text(40000, 3));
  train_tokenizer(
      [&]() -> std::optional<std::string> {
        std::string line;
        if (!std::getline(lines, line)) return std::nullopt;
        return line;
      },
      500, folder / "model");
  const auto made = make_tokenizer_json(read_file(folder / "model"), "");
  REQUIRE(made.reason.empty());
  write_file(folder / "tokenizer.json", made.content);
  const auto model = Tokenizer::load(folder / "model");
  const auto tokenizer = Tokenizer::load(folder / "tokenizer.json");
  check_same_ids(*model, *tokenizer, sample_text(60000, 4));
  for (const auto& text : hard_texts()) check_same_ids(*model, *tokenizer, text);
}

TEST_CASE("a model that no tokenizer.json describes is refused with the reason") {
  const auto reason_of = [](const std::string& model, const std::string& config = "") {
    const auto made = make_tokenizer_json(model, config);
    CHECK(made.content.empty() == !made.reason.empty());
    return made.reason;
  };
  const auto model_of = [](const char* name) {
    return read_file(golden_models() / (std::string(name) + ".model"));
  };
  CHECK(reason_of(model_of("unigram")) == "it is no byte-pair model");
  const auto bytes = model_of("bytes");
  CHECK(reason_of(bytes).empty());
  CHECK(reason_of(bytes, R"({"eos_token": "</s>"})").empty());
  CHECK(reason_of(bytes, R"({"eos_token": "<s>"})") ==
        "tokenizer_config.json has another end token");
  CHECK_THAT(reason_of(bytes, R"({"eos_token": "<end>"})"), Catch::Contains("'<end>'"));
  CHECK_THAT(reason_of(bytes, "{"), Catch::Contains("tokenizer_config.json"));
  constexpr char kNormal = 1, kFixed = 4;
  CHECK_THAT(reason_of(with_piece(with_piece(bytes, "qq", -9000, kNormal), "zz", -9000, kNormal)),
             Catch::Contains("have one score"));
  CHECK_THAT(reason_of(with_piece(bytes, "\u4e01\u4e02", -9000, kNormal)),
             Catch::Contains("is no piece"));
  CHECK_THAT(reason_of(with_piece(model_of("prefix"), "<tag>", 0, kFixed)),
             Catch::Contains("fixed pieces"));
  CHECK_THROWS_AS(make_tokenizer_json("no model", ""), DataError);
}

}  // namespace farstep
