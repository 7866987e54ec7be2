#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/model/language/model_folder.h"

namespace farstep {

namespace {

// A folder that `transformers` has saved.
std::filesystem::path saved_folder(const std::string& name) {
  return source_folder() / "tests/golden/hugging_face" / name;
}

}  // namespace

TEST_CASE("an imported folder has the model in one file, and its tokenizer") {
  const TemporaryFolder folder;
  const auto model = folder / "model";
  std::filesystem::copy(saved_folder("llama3_sharded"), model);
  write_file(model / "tokenizer.json", R"({"model": {"vocab": {"a": 0}}})");
  REQUIRE(import_command({model.string(), "--output", (folder / "fp32").string()}) == 0);
  REQUIRE(import_command(
              {model.string(), "--output", (folder / "bf16").string(), "--dtype", "bf16"}) == 0);
  const auto source = read_language_folder(model);
  for (const auto* name : {"fp32", "bf16"}) {
    const auto copy = read_language_folder(folder / name);
    CHECK(copy.config == source.config);
    CHECK(copy.folder.files.size() == 1);
    CHECK(at::equal(open_model(copy)->parameters().values(),
                    open_model(source)->parameters().values()));
    CHECK(read_file(folder / name / "tokenizer.json") == read_file(model / "tokenizer.json"));
  }
}

TEST_CASE("an import without output writes nothing, and refuses what a run would") {
  const TemporaryFolder folder;
  const auto model = folder / "model";
  std::filesystem::copy(saved_folder("tied_halves"), model);
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
  };
  CHECK(import_command({model.string()}) == 0);
  CHECK(count() == 1);
  write_file(model / "tokenizer.json", R"({"model": {"vocab": {"a": 29}}})");
  CHECK_THROWS_WITH(import_command({model.string()}), Catch::Contains("the tokenizer has 30 ids"));
  std::filesystem::remove(model / "tokenizer.json");
  auto config = Json::parse(read_file(model / "config.json"));
  config["attention_bias"] = true;
  write_file(model / "config.json", config.dump());
  CHECK_THROWS_WITH(
      import_command({model.string(), "--output", (folder / "out").string()}),
      Catch::Contains((model / "config.json").string() + ": attention_bias: is true"));
  CHECK(count() == 1);
}

}  // namespace farstep
