#include "trainer/data/tokenizer/json_tokenizer.h"

#include <algorithm>
#include <future>
#include <random>

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

// The same with Llama 3's expression, which takes newlines behind what is no letter.
FileJson llama3_file() {
  auto file = small_file();
  const char* const expression =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const FileJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}};
  const FileJson bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  // Of a newline and the last byte of U+0301.
  auto& model = file["model"];
  model["vocab"]["\u0123\u010a"] = 502;
  model["merges"].push_back("\u0123 \u010a");
  return file;
}

// A tokenizer of characters and some longer pieces.
FileJson character_file(const std::string& type) {
  FileJson vocabulary, scores = FileJson::array();
  for (const std::string piece :
       {"<unk>", "</s>", "t", "h", "e", "d", "x", "\u00e9", "\u0301", "\u2581", " ", "\n", "th",
        "the", "ed", "dx", "\u2581t", "\u2581\u2581", "h\u2581"}) {
    vocabulary[piece] = scores.size();
    const auto rank = static_cast<double>(scores.size());
    scores.push_back({piece, piece.starts_with('<') ? 0.0 : -1.0 - 0.25 * rank});
  }
  FileJson model = {{"type", type}, {"fuse_unk", true}};
  if (type == "BPE") {
    model["unk_token"] = "<unk>";
    model["vocab"] = vocabulary;
    model["merges"] = {"t h", "th e", "e d", "d x", "\u2581 t", "\u2581 \u2581", "h \u2581"};
  } else {
    model["unk_id"] = 0;
    model["vocab"] = scores;
  }
  return {{"model", model},
          {"added_tokens", {{{"id", 1}, {"content", "</s>"}, {"special", true}}}}};
}

FileJson replacement(const std::string& kind, const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{kind, from}}}, {"content", to}};
}

FileJson sequence(const std::vector<FileJson>& steps) {
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

// Checks a text that is cut wherever it may be, or at random: the parts have the ids of the whole.
void check_cuts(const std::string& name, FileJson file, const FileJson& normalizer, bool is_cut) {
  TemporaryFolder folder;
  file["normalizer"] = normalizer;
  write_file(folder / "tokenizer.json", file.dump());
  const auto tokenizer = Tokenizer::load(folder.path());
  const std::string kParts[] = {"the",    "th",     "e",    "x",      "d",       " ",
                                "  ",     "\n",     "\n\n", "\u00e9", "e\u0301", "\u0301",
                                "\ufb01", "\u0958", "-",    " t",     "</s>"};
  std::mt19937 random(7);
  std::string text;
  while (text.size() < 20'000) text += kParts[random() % std::size(kParts)];
  const auto whole = tokenizer->encode(text);
  std::size_t cuts = 0;
  for (const unsigned share : {1, 3}) {
    std::vector<int32_t> ids;
    std::size_t begin = 0;
    for (std::size_t place = 1; place < text.size(); ++place) {
      const bool is_character = (text[place] & 0xc0) != 0x80;
      if (!is_character || !tokenizer->may_cut(text, place) || random() % share != 0) continue;
      tokenizer->encode_part(std::string_view(text).substr(begin, place - begin), begin == 0, ids);
      begin = place;
      ++cuts;
    }
    tokenizer->encode_part(std::string_view(text).substr(begin), begin == 0, ids);
    INFO(name);
    CHECK((ids == whole));
  }
  CHECK((cuts > 100) == is_cut);
  CHECK((cuts == 0) != is_cut);
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

TEST_CASE("what goes before a text is what the files say, and never twice") {
  TemporaryFolder folder;
  auto file = small_file();
  const auto opening = [&] {
    write_file(folder / "tokenizer.json", file.dump());
    return Tokenizer::load(folder.path())->opening();
  };
  const auto config = [&](const std::string& text) {
    write_file(folder / "tokenizer_config.json", text);
  };
  using Ids = std::vector<int32_t>;
  CHECK(opening().empty());
  file["added_tokens"].push_back({{"id", 511}, {"content", "<s>"}, {"special", true}});
  CHECK(opening().empty());
  file["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"th", 500}}, {"sep", {"e", 1}}};
  CHECK(opening() == Ids{500});
  config(R"({"bos_token": "the"})");
  CHECK(opening() == Ids{500});
  config(R"({"bos_token": "the", "add_bos_token": true})");
  CHECK(opening() == Ids{501});
  config(R"({"add_bos_token": true})");
  CHECK(opening() == Ids{511});
  config(R"({"add_bos_token": false})");
  CHECK(opening().empty());
  config(R"({"tokenizer_class": "LlamaTokenizerFast"})");
  CHECK(opening() == Ids{511});

  const auto text = Tokenizer::load(folder.path());
  const auto names = Tokenizer::load(folder.path(), "", SpecialTokens::kTokens);
  CHECK(text->encode("the").size() == 1);
  CHECK(text->encode_opened("the") == Ids{511, 501});
  CHECK(text->encode_opened("") == Ids{511});
  CHECK(names->encode_opened("<s>the") == Ids{511, 501});
  CHECK(names->encode_opened("<s><s>") == Ids{511, 511});
  CHECK(text->encode_opened("<s>the").size() > 3);  // the name is text
  Ids parts{7};
  names->encode_part_opened("the", true, parts);
  names->encode_part_opened("the", false, parts);
  CHECK(parts == Ids{7, 511, 501, 501});

  config("{}");
  file["post_processor"]["cls"][1] = 600;
  write_file(folder / "tokenizer.json", file.dump());
  CHECK_THROWS_WITH(Tokenizer::load(folder.path()),
                    Catch::Contains("tokenizer.json: post_processor: there is no token 600"));
}

TEST_CASE("a text of which a normalizer makes too much is refused with the file's name") {
  TemporaryFolder folder;
  auto file = small_file();
  std::vector<FileJson> steps(40, replacement("String", "a", "aa"));
  file["normalizer"] = sequence(steps);
  write_file(folder / "tokenizer.json", file.dump());
  const auto tokenizer = Tokenizer::load(folder.path());
  CHECK(tokenizer->encode("the") == std::vector<int32_t>{501});
  CHECK_THROWS_WITH(tokenizer->encode("that"),
                    Catch::StartsWith((folder / "tokenizer.json").string() + ": normalizer: "));
}

TEST_CASE("a file that is broken or not supported is refused with its name and place") {
  TemporaryFolder folder;
  write_file(folder / "tokenizer.json", "{\"model\": ");
  CHECK_THROWS_WITH(Tokenizer::load(folder.path()), Catch::Contains("tokenizer.json: byte 10:"));
  for (const std::string number : {"1e400", "-1e400", "[1, 1e999]"}) {
    write_file(folder / "tokenizer.json", R"({"model": {"vocab": )" + number + "}}");
    CHECK_THROWS_WITH(Tokenizer::load(folder.path()),
                      Catch::Contains("tokenizer.json: byte ") && Catch::Contains("too large"));
  }
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

TEST_CASE("a long document has the ids of its parts, whatever the normalizer does") {
  const FileJson space_sign = replacement("String", " ", "\u2581");
  const FileJson none, prepend = {{"type", "Prepend"}, {"prepend", "\u2581"}};
  struct Case {
    std::string name;
    FileJson normalizer;
    bool is_cut;
  };
  // By bytes a space must stay one.
  const Case by_bytes[] = {{"none", none, true},
                           {"NFC", {{"type", "NFC"}}, true},
                           {"NFD", {{"type", "NFD"}}, true},
                           {"NFKC", {{"type", "NFKC"}}, true},
                           {"of a letter", replacement("String", "d", "-"), true},
                           {"of newlines", replacement("String", "\n", ""), false},
                           {"Strip", {{"type", "Strip"}}, false},
                           {"expression", replacement("Regex", " +\\z", "-"), false},
                           {"spaces", replacement("Regex", "\\A +| {2,}", ""), false}};
  const Case by_characters[] = {
      {"none", none, true},
      {"llama", sequence({prepend, space_sign}), true},
      {"NFC", sequence({{{"type", "NFC"}}, space_sign}), true},
      {"NFKD", sequence({{{"type", "NFKD"}}, space_sign}), true},
      {"of a letter", sequence({replacement("String", "d", "h"), space_sign}), true},
      {"Strip", sequence({{{"type", "Strip"}}, space_sign}), false},
      {"expression", sequence({replacement("Regex", " +\\z|e(?= )", ""), space_sign}), false}};
  for (const auto& each : by_bytes)
    check_cuts(each.name, llama3_file(), each.normalizer, each.is_cut);
  for (const auto& each : by_characters) {
    check_cuts(each.name, character_file("BPE"), each.normalizer, each.is_cut);
    check_cuts(each.name, character_file("Unigram"), each.normalizer, each.is_cut);
  }
}

TEST_CASE("an end token of one character keeps its piece for the text, and a longer one does not") {
  TemporaryFolder folder;
  write_file(folder / "tokenizer.json", character_file("Unigram").dump());
  const auto usual = Tokenizer::load(folder.path());
  const auto text = usual->encode("the th");
  const auto by_character = Tokenizer::load(folder.path(), "e");
  CHECK(by_character->encode("e")[0] == by_character->eos());
  CHECK(by_character->encode("the th") == text);
  const auto by_piece = Tokenizer::load(folder.path(), "the");
  CHECK(std::ranges::count(text, by_piece->eos()) == 1);
  CHECK(std::ranges::count(by_piece->encode("the th"), by_piece->eos()) == 0);
  // A character that the file itself names as special has no token in a text.
  auto file = character_file("Unigram");
  const auto id = usual->encode("d")[0];
  file["added_tokens"].push_back({{"id", id}, {"content", "d"}, {"special", true}});
  write_file(folder / "tokenizer.json", file.dump());
  CHECK(std::ranges::count(Tokenizer::load(folder.path())->encode("xdx"), id) == 0);
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
