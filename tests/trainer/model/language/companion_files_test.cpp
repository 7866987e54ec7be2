#include "trainer/model/language/companion_files.h"

#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/train_tokenizer.h"

namespace farstep {

namespace {

using Catch::Contains;

const HfFacts kStart{.positions = 8192, .bos = 38, .pad = 5, .eos = {37, 39}};

void train_vocabulary(const std::filesystem::path& out) {
  std::istringstream lines(sample_text(20'000, 1));
  std::string line;
  train_tokenizer([&] { return std::getline(lines, line) ? std::optional(line) : std::nullopt; },
                  300, out);
}

std::string names_of(const std::filesystem::path& model, const std::filesystem::path& data) {
  return names_text(companion_files(model, data));
}

}  // namespace

TEST_CASE("the files beside a model go with it unless the data has another vocabulary") {
  const TemporaryFolder folder;
  const auto model = folder / "model", data = folder / "data";
  make_folder(model);
  make_folder(data);
  CHECK(companion_files(model, data).empty());
  write_file(data / "tokenizer.json", "{1}");
  write_file(data / "train-00000.tokens", "");
  CHECK(names_of(model, data) == "tokenizer.json");
  CHECK(names_of(model, "") == "no tokenizer");
  CHECK(names_of("", "") == "no tokenizer");
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json",
                           "special_tokens_map.json", "config.json", "README.md"}) {
    write_file(model / name, "{1}");
  }
  const std::string all =
      "tokenizer.json, tokenizer_config.json, special_tokens_map.json, generation_config.json";
  CHECK(names_of(model, data) == all);
  CHECK(names_of(model, "") == all);
  write_file(data / "tokenizer.json", "{2}");
  const auto others = companion_files(model, data);
  REQUIRE(others.size() == 1);
  CHECK(others[0].content == "{2}");
}

TEST_CASE("a dataset's SentencePiece model says that nothing is put before a text") {
  const TemporaryFolder data;
  train_vocabulary(data / "tokenizer.model");
  const auto files = companion_files("", data.path());
  REQUIRE(files.size() == 2);
  CHECK(files[0].name == "tokenizer.model");
  REQUIRE(files[1].name == "tokenizer_config.json");
  const auto config = Json::parse(files[1].content);
  for (const auto* member : {"add_bos_token", "add_eos_token", "add_prefix_space"}) {
    CHECK(config.at(member) == false);
  }
  write_file(data / "tokenizer_config.json", "{}");
  CHECK(companion_files("", data.path())[1].content == "{}");
}

TEST_CASE("a model that goes on keeps its ids and its length") {
  CHECK(trained_facts(kStart, {.eos = 39, .bos = {}}, 64) == kStart);
  CHECK(trained_facts(kStart, {}, 64) == kStart);
  CHECK(trained_facts(kStart, {.eos = 37, .bos = {}}, 10'000).positions == 10'000);
}

TEST_CASE("a model that learns another vocabulary has the ids of that one") {
  const TemporaryFolder data;
  CHECK(trained_facts(kStart, document_tokens(data.path(), 2), 64) ==
        HfFacts{.positions = 8192, .bos = {}, .pad = {}, .eos = {2}});
  train_vocabulary(data / "tokenizer.model");
  CHECK(trained_facts(kStart, document_tokens(data.path(), 2), 64) ==
        HfFacts{.positions = 8192, .bos = 1, .pad = {}, .eos = {2}});
  CHECK(trained_facts(std::nullopt, document_tokens(data.path(), 2), 64) ==
        HfFacts{.positions = 64, .bos = 1, .pad = {}, .eos = {2}});
  CHECK(trained_facts(std::nullopt, {}, 64) ==
        HfFacts{.positions = 64, .bos = {}, .pad = {}, .eos = {}});
}

TEST_CASE("a Unigram model's tokenizer.json is not left to LLaMA's class") {
  for (const std::string name : {"unigram", "bytes"}) {
    INFO(name);
    const auto model = read_file(source_folder() / ("tests/golden/tokenizers/" + name + ".model"));
    const std::string config = R"({"tokenizer_class": "LlamaTokenizer"})";
    std::vector<NamedText> files = {{"tokenizer.model", model}, {"tokenizer_config.json", config}};
    const auto notes = add_tokenizer_json(files);
    CHECK(notes.reason == "");
    CHECK(notes.caution == "");
    REQUIRE(names_text(files) == "tokenizer.model, tokenizer_config.json, tokenizer.json");
    CHECK((files[1].content == config) == (name == "bytes"));
    if (name == "unigram") CHECK_THAT(files[1].content, Contains("PreTrainedTokenizerFast"));
  }
}

TEST_CASE("a tokenizer's ids are counted") {
  const TemporaryFolder folder;
  CHECK_FALSE(tokenizer_ids(folder.path()));
  train_vocabulary(folder / "tokenizer.model");
  CHECK(tokenizer_ids(folder.path()) == 300);
  const auto count = [&](const std::string& text) {
    write_file(folder / "tokenizer.json", text);
    return tokenizer_ids(folder.path());
  };
  CHECK(count(R"({"model": {"vocab": {"b": 1, "a": 0}}, "added_tokens": []})") == 2);
  CHECK(count(R"({"model": {"vocab": [["a", -1.5], ["b", -2], ["c", 0]]}})") == 3);
  CHECK(count(R"({"model": {"vocab": {}}, "added_tokens": [{"id": 7}, {"id": 2}]})") == 8);
}

TEST_CASE("a malformed tokenizer.json is refused with its name") {
  const TemporaryFolder folder;
  for (const auto* text :
       {"", "[]", "{", "{}", R"({"model": 3})", R"({"model": {}})",
        R"({"model": {"vocab": {"a": -1}}})",
        R"({"model": {"vocab": {"a": 18446744073709551615}}})",
        R"({"model": {"vocab": {"a": "b"}}})", R"({"model": {"vocab": {"a": 0, "a": 1}}})",
        R"({"model": {"vocab": {}}, "added_tokens": 3})",
        R"({"model": {"vocab": {}}, "added_tokens": [3]})"}) {
    INFO(text);
    write_file(folder / "tokenizer.json", text);
    CHECK_THROWS_WITH(tokenizer_ids(folder.path()),
                      Contains((folder / "tokenizer.json").string() + ": ") &&
                          Contains("copy the tokenizer's files again"));
  }
}

TEST_CASE("generation_config.json never names other ends alone than the documents have") {
  const auto ends = [](const std::string& content, const std::vector<int64_t>& eos) {
    std::vector<NamedText> files{{"tokenizer.json", "{}"}, {"generation_config.json", content}};
    set_generation_ends(files, eos);
    CHECK(files[0].content == "{}");
    return files[1].content;
  };
  CHECK(Json::parse(ends(R"({"eos_token_id": 3, "top_k": 5})", {7})) ==
        Json{{"eos_token_id", {7}}, {"top_k", 5}});
  CHECK(Json::parse(ends(R"({"eos_token_id": [3, 4]})", {7, 8})) == Json{{"eos_token_id", {7, 8}}});
  for (const std::string kept : {R"({"eos_token_id": [3, 7]})", R"({"eos_token_id": 7})",
                                 R"({"eos_token_id": null})", "{}", "no JSON"}) {
    CHECK(ends(kept, {7}) == kept);
  }
  CHECK(ends(R"({"eos_token_id": 3})", {}) == R"({"eos_token_id": 3})");
  std::vector<NamedText> none;
  set_generation_ends(none, {7});
  CHECK(none.empty());
}

}  // namespace farstep
