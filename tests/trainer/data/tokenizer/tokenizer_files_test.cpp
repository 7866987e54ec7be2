#include "trainer/data/tokenizer/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace farstep {

TEST_CASE("a folder's tokenizer is its tokenizer.json, else its model") {
  TemporaryFolder folder;
  CHECK_FALSE(has_tokenizer(folder.path()));
  CHECK_THROWS_AS(tokenizer_file(folder.path()), DataError);
  CHECK(tokenizer_file(folder / "some.file") == folder / "some.file");
  write_file(folder / "tokenizer.model", "model");
  CHECK(tokenizer_file(folder.path()) == folder / "tokenizer.model");
  write_file(folder / "tokenizer.json", "{}");
  CHECK(tokenizer_file(folder.path()) == folder / "tokenizer.json");
  CHECK(has_tokenizer(folder.path()));
}

TEST_CASE("a copy has the names that are looked for, and the end token") {
  TemporaryFolder folder;
  make_folder(folder / "a");
  make_folder(folder / "b");
  make_folder(folder / "c");
  const auto model = read_file(source_folder() / "tests/golden/tokenizers/prefix.model");
  write_file(folder / "a/my.model", model);
  copy_tokenizer(folder / "a/my.model", folder / "b");
  CHECK(read_file(folder / "b/tokenizer.model") == model);
  CHECK_FALSE(std::filesystem::exists(folder / "b/tokenizer_config.json"));

  write_file(folder / "a/my.json", " {}");
  copy_tokenizer(folder / "a/my.json", folder / "b");
  CHECK(read_file(folder / "b/tokenizer.json") == " {}");
  CHECK_FALSE(std::filesystem::exists(folder / "b/tokenizer_config.json"));
  write_file(folder / "a/tokenizer_config.json", R"({"eos_token": "x", "other": 1})");
  CHECK(tokenizer_files(folder / "a/my.json").size() == 2);
  CHECK(tokenizer_files(folder / "a/my.model").size() == 2);
  make_folder(folder / "d");
  copy_tokenizer(folder / "a/my.model", folder / "d");
  CHECK_FALSE(std::filesystem::exists(folder / "d/tokenizer_config.json"));
  copy_tokenizer(folder / "a/my.json", folder / "b");
  CHECK(read_file(folder / "b/tokenizer_config.json") == R"({"eos_token": "x", "other": 1})");
  copy_tokenizer(folder / "a/my.json", folder / "c", "<end>");
  const auto config = nlohmann::json::parse(read_file(folder / "c/tokenizer_config.json"));
  CHECK(config == nlohmann::json{{"eos_token", "<end>"}, {"other", 1}});
}

TEST_CASE("a SentencePiece model begins texts as transformers does, and so does its copy") {
  TemporaryFolder folder;
  make_folder(folder / "a");
  make_folder(folder / "b");
  write_file(folder / "a/tokenizer.model",
             read_file(source_folder() / "tests/golden/tokenizers/prefix.model"));
  const auto begins = [&](const std::string& name) {
    return !Tokenizer::load(folder / name)->opening().empty();
  };
  const auto copy_begins = [&] {
    copy_tokenizer(folder / "a", folder / "b");
    const bool found = begins("b");
    CHECK(std::filesystem::remove(folder / "b/tokenizer_config.json") == found);
    CHECK(found == begins("a"));
    return found;
  };
  CHECK_FALSE(copy_begins());
  write_file(folder / "a/config.json", R"({"model_type": "other"})");
  CHECK_FALSE(copy_begins());
  write_file(folder / "a/config.json", R"({"model_type": "llama"})");
  CHECK(copy_begins());
  write_file(folder / "a/tokenizer_config.json", R"({"tokenizer_class": "Other"})");
  CHECK_FALSE(copy_begins());
  write_file(folder / "a/tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  CHECK(copy_begins());
  write_file(folder / "a/tokenizer_config.json", R"({"add_bos_token": false})");
  CHECK_FALSE(copy_begins());
  CHECK(Tokenizer::load(folder / "a")->bos() == 1);
}

}  // namespace farstep
