#include "trainer/data/tokenizer/sentencepiece_json.h"

#include <random>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/documents/text_source.h"
#include "trainer/data/tokenizer/sentencepiece_file.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/train_tokenizer.h"

namespace farstep {

namespace {

std::filesystem::path golden_models() {
  return source_folder() / "tests/golden/tokenizers";
}

std::vector<std::string> hard_texts() {
  static const auto kReference = nlohmann::json::parse(
      TextSource(golden_models() / "reference.json.gz", FileKind::kText).next()->text);
  return kReference["cases"].get<std::vector<std::string>>();
}

void check_same_ids(const Tokenizer& model, const Tokenizer& made, const std::string& text) {
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

std::string model_of(const std::string& name) {
  return read_file(golden_models() / (name + ".model"));
}

// A field of protobuf with bytes in it.
std::string field_of(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (auto size = bytes.size();; size >>= 7) {
    field += static_cast<char>((size & 0x7f) | (size < 0x80 ? 0 : 0x80));
    if (size < 0x80) return field + bytes;
  }
}

// The fields of a normalizer take the place of those before.
std::string with_normalizer(const std::string& model, const std::string& fields) {
  return model + field_of(3, fields);
}

// A table with the rule that the letters become "c"; SentencePiece's tables have the same form.
std::string rule_for(const std::string& letters) {
  std::vector<uint32_t> units(512);
  constexpr uint32_t kHasValue = 1 << 8, kIsValue = 1U << 31;
  std::size_t place = 0;
  units[0] = 256 << 10;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto byte = static_cast<unsigned char>(letters[i]);
    place ^= (units[place] >> 10) ^ byte;
    // The children of each node are a row of their own, or the value.
    const std::size_t row = i + 1 < letters.size() ? 384 : 1;
    units[place] = byte | static_cast<uint32_t>(place ^ row) << 10;
    if (row == 1) units[place] |= kHasValue;
  }
  units[1] = kIsValue;
  const auto bytes = static_cast<uint32_t>(units.size() * sizeof(uint32_t));
  std::string table(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  table.append(reinterpret_cast<const char*>(units.data()), bytes);
  return table + std::string("c\0", 2);
}

// The sum of the scores of the ids.
double sum_of(const SentencePieceFile& file, const std::vector<int32_t>& ids) {
  double sum = 0;
  for (const auto id : ids) sum += file.pieces.at(static_cast<std::size_t>(id)).score;
  return sum;
}

// Of two equally likely ways versions of SentencePiece take one or the other.
void check_likeliest(const SentencePieceFile& file, const Tokenizer& model, const Tokenizer& made,
                     const std::string& text) {
  INFO(text);
  const auto ids = made.encode(text), expected = model.encode(text);
  // At the begin of a text the sign of a space counts as one.
  if (text.find("\u2581") == text.npos) CHECK(made.decode(ids) == model.decode(expected));
  if (ids == expected) return;
  CHECK(ids.size() == expected.size());
  CHECK(sum_of(file, ids) == Approx(sum_of(file, expected)));
}

}  // namespace

TEST_CASE("a Unigram model becomes a tokenizer.json, with each kind of normalizer") {
  const TemporaryFolder folder;
  std::mt19937 random(2);
  const auto unigram = model_of("unigram");
  const std::string no_prefix("\x18\0", 2), less_space("\x20\x01", 2);
  const struct {
    std::string name, model;
  } kinds[] = {{"as it is", unigram},
               {"no prefix", with_normalizer(unigram, no_prefix)},
               {"less space", with_normalizer(unigram, less_space)},
               {"less space, no prefix", with_normalizer(unigram, less_space + no_prefix)},
               {"rule", with_normalizer(unigram, field_of(2, rule_for("a")))}};
  for (const auto& kind : kinds) {
    INFO(kind.name);
    const auto made = make_tokenizer_json(kind.model, "");
    CHECK(made.reason == "");
    CHECK(made.caution == "");
    write_file(folder / "tokenizer.json", made.content);
    write_file(folder / "model", kind.model);
    const auto file = read_sentencepiece_file(kind.model).value();
    const auto model = Tokenizer::load(folder / "model");
    const auto tokenizer = Tokenizer::load(folder / "tokenizer.json");
    CHECK(tokenizer->vocabulary() == model->vocabulary());
    CHECK(tokenizer->eos() == model->eos());
    const bool has_rule = kind.name == "rule";
    for (const auto& text : hard_texts()) {
      // The mark behind an "a" is of one grapheme with it.
      if (has_rule && text.find("a\u0301") != text.npos) continue;
      check_likeliest(file, *model, *tokenizer, text);
    }
    for (int i = 0; i < 2000; ++i) check_likeliest(file, *model, *tokenizer, mixed_text(random));
    CHECK(tokenizer->encode("a day") == model->encode(has_rule ? "c dcy" : "a day"));
  }
}

TEST_CASE("rules that hold for no grapheme are told by name") {
  const auto model = with_normalizer(model_of("unigram"), field_of(2, rule_for("ab")));
  const auto made = make_tokenizer_json(model, "");
  CHECK(made.reason == "");
  CHECK_FALSE(made.content.empty());
  CHECK_THAT(made.caution, Catch::Contains("1 of its 1 rules") &&
                               Catch::Contains("'ab' becomes 'ab' there, not 'c'"));
}

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
  // A model of words, and pieces without U+2581.
  CHECK(reason_of(model_of("unigram") + field_of(2, "\x18\x03")) ==
        "it is no byte-pair and no Unigram model");
  CHECK(reason_of(with_normalizer(model_of("unigram"), std::string("\x28\0", 2))) ==
        "its pieces have spaces in another form");
  CHECK(reason_of(with_normalizer(model_of("bytes"), "\x20\x01")) ==
        "it changes text before it finds pieces");
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
  CHECK(reason_of(with_piece(model_of("unigram"), "day", 0, kFixed)).empty());
  CHECK_THAT(reason_of(with_piece(model_of("unigram"), "\u4e01\u4e02", -9, kNormal)),
             Catch::Contains("is no piece"));
  CHECK_THAT(
      reason_of(with_normalizer(with_piece(model_of("unigram"), "<tag>", 0, kFixed), "\x20\x01")),
      Catch::Contains("not its fixed pieces"));
  CHECK_THROWS_AS(make_tokenizer_json("no model", ""), DataError);
}

}  // namespace farstep
