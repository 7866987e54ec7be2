// Ids and texts of Python's libraries, which scripts/reference_tokenizers.py has recorded.

#include <algorithm>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/data/documents/text_source.h"
#include "trainer/data/text/utf8.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace farstep {

namespace {

using FileJson = nlohmann::json;
using Ids = std::vector<int32_t>;

std::filesystem::path golden() {
  return source_folder() / "tests/golden/tokenizers";
}

const FileJson& reference() {
  static const auto kReference =
      FileJson::parse(TextSource(golden() / "reference.json.gz", FileKind::kText).next()->text);
  return kReference;
}

// The value that `values` has for a case, where it lists only those that differ from `usual`.
template <typename Value>
Value value_of(const FileJson& values, std::size_t index, const Value& usual) {
  const auto found = values.find(std::to_string(index));
  return found == values.end() ? usual : found->get<Value>();
}

// Whether the parts of the text have the ids of the whole, cut at some of the places that allow it.
void check_cuts(const Tokenizer& tokenizer, const std::string& text, const Ids& whole) {
  std::mt19937 random(static_cast<uint32_t>(text.size()));
  Ids ids;
  std::size_t begin = 0;
  for (std::size_t place = 1; place < text.size(); ++place) {
    if ((text[place] & 0xc0) == 0x80 || !tokenizer.may_cut(text, place) || random() % 2 == 0) {
      continue;
    }
    tokenizer.encode_part(std::string_view(text).substr(begin, place - begin), begin == 0, ids);
    begin = place;
  }
  tokenizer.encode_part(std::string_view(text).substr(begin), begin == 0, ids);
  CHECK(ids == whole);
}

}  // namespace

TEST_CASE("tokenizers of every kind have the ids and texts of Hugging Face's library") {
  TemporaryFolder folder;
  const auto cases = reference()["cases"].get<std::vector<std::string>>();
  std::map<std::string, std::vector<Ids>> base;
  for (const auto& kind : reference()["kinds"]) {
    const auto model = kind["model"].get<std::string>();
    auto file = kind["file"];
    file["model"] = reference()["models"][model];
    file["model"].update(kind["changes"]);
    write_file(folder / "tokenizer.json", file.dump());
    const auto end = model == "bytes" ? "<|end|>" : "</s>";
    // As that library reads texts by default.
    const auto tokenizer = Tokenizer::load(folder / "tokenizer.json", end, SpecialTokens::kTokens);
    auto& usual = base[model];
    const bool is_first = usual.empty();
    if (is_first) usual.resize(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO(kind["name"] << ", case " << i << ": " << cases[i]);
      const auto expected = value_of(kind["ids"], i, usual[i]);
      const auto ids = tokenizer->encode(cases[i]);
      CHECK(ids == expected);
      check_cuts(*tokenizer, cases[i], ids);
      if (is_first) usual[i] = expected;
      if (kind.contains("decoded")) {
        CHECK(tokenizer->decode(ids) == value_of(kind["decoded"], i, cases[i]));
      }
    }
  }
}

TEST_CASE("a name that stays text is read as if there were no such token") {
  TemporaryFolder folder;
  const auto cases = reference()["cases"].get<std::vector<std::string>>();
  int64_t differ = 0;
  for (const auto& kind : reference()["kinds"]) {
    const auto model = kind["model"].get<std::string>();
    auto file = kind["file"];
    file["model"] = reference()["models"][model];
    file["model"].update(kind["changes"]);
    auto without = file;
    auto& added = without["added_tokens"];
    std::vector<std::string> names;
    for (auto token = added.begin(); token != added.end();) {
      if (!(*token)["special"].get<bool>()) {
        ++token;
        continue;
      }
      names.push_back((*token)["content"]);
      token = added.erase(token);
    }
    write_file(folder / "with.json", file.dump());
    write_file(folder / "without.json", without.dump());
    const std::string end = model == "bytes" ? "<|end|>" : "</s>";
    const auto as_text = Tokenizer::load(folder / "with.json", end);
    const auto as_tokens = Tokenizer::load(folder / "with.json", end, SpecialTokens::kTokens);
    // Its end is some other token, as it has none of that name.
    const auto plain = Tokenizer::load(folder / "without.json", "a", SpecialTokens::kTokens);
    for (const auto& text : cases) {
      // A name that is left hides other names within it, as in the library.
      const bool has_name = std::ranges::any_of(
          names, [&](const auto& name) { return text.find(name) != text.npos; });
      INFO(kind["name"] << ": " << text);
      const auto ids = as_text->encode(text);
      CHECK(ids == plain->encode(text));
      CHECK(std::ranges::find(ids, as_text->eos()) == ids.end());
      check_cuts(*as_text, text, ids);
      differ += has_name && ids != as_tokens->encode(text) ? 1 : 0;
    }
    CHECK((as_text->names_left_as_text() > 0));
    CHECK(as_tokens->names_left_as_text() == 0);
  }
  CHECK(differ > 20);
}

TEST_CASE("models have the ids and texts of SentencePiece") {
  const auto cases = reference()["cases"].get<std::vector<std::string>>();
  for (const auto& kind : reference()["sentencepiece"]) {
    const auto tokenizer = Tokenizer::load(golden() / (kind["name"].get<std::string>() + ".model"));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO(kind["name"] << ", case " << i << ": " << cases[i]);
      const auto ids = tokenizer->encode(cases[i]);
      const auto expected = kind["ids"][i].get<Ids>();
      // Of two equally likely ways to cut a text, versions of the library take one or the other.
      if (kind["name"] == "unigram") {
        CHECK(ids.size() == expected.size());
      } else {
        CHECK(ids == expected);
      }
      check_cuts(*tokenizer, cases[i], ids);
      CHECK(tokenizer->decode(ids) == value_of(kind["decoded"], i, cases[i]));
    }
  }
}

}  // namespace farstep
