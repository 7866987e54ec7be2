#include <sstream>
#include <tuple>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/data/tokens/sample_text.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/data/tokenizer/train_tokenizer.h"
#include "trainer/model/shape/hf_config.h"

using namespace farstep;
using Catch::Contains;

namespace {

const Json kConfig =
    to_hugging_face({kSmallConfig, {.positions = 8, .bos = 1, .pad = {}, .eos = {2}}});

NamedBuffers buffers_of(Llama& model) {
  auto& parameters = model.parameters();
  return named_parameters(parameters.layout(), parameters.host_values().pull());
}

// A Hugging Face folder with the small model's parameters.
std::string write_small_model(const TemporaryFolder& folder) {
  auto model = small_model();
  write_hf_folder(folder / "model", kConfig, buffers_of(model));
  return (folder / "model").string();
}

void train_vocabulary(const std::filesystem::path& out, int64_t vocabulary) {
  std::istringstream lines(sample_text(20'000, 1));
  std::string line;
  train_tokenizer([&] { return std::getline(lines, line) ? std::optional(line) : std::nullopt; },
                  vocabulary, out);
}

}  // namespace

TEST_CASE("what is exported of a site is its newest checkpoint in the layout of transformers") {
  const TemporaryFolder folder;
  auto model = small_model();
  TrainState state;
  state.progress = {.run = "novels", .site = "north", .theta_hash = "0"};
  state.run_config = Json::object();
  state.model_config = kConfig.dump();
  for (const int64_t round : {1, 2}) {
    model.parameters().values().add_(1);
    state.progress.round = round;
    state.global = buffers_of(model);
    save_checkpoint(folder / "north" / "checkpoints", state);
  }
  REQUIRE(export_command({(folder / "north").string(), "--output", (folder / "out").string()}) ==
          0);

  const auto exported = read_hf_folder(folder / "out");
  CHECK(exported.config == kConfig);
  REQUIRE(exported.files.size() == 1);
  CHECK(exported.files[0].metadata().at("format") == "pt");
  const auto& layout = model.parameters().layout();
  REQUIRE(exported.files[0].entries().size() == layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& entry = exported.files[0].entries()[i];
    CHECK(entry.name == layout[i].name);
    CHECK(entry.shape == layout[i].shape);
    CHECK(entry.dtype == DType::kF32);
  }
  auto copy = small_model();
  load_parameters(exported, buffers_of(copy));
  CHECK(at::equal(copy.parameters().values(), model.parameters().values()));
  const std::filesystem::directory_iterator files(folder / "out");
  CHECK(std::distance(files, {}) == 2);
}

TEST_CASE("a folder of halves is exported in the type that is asked for and says so") {
  const TemporaryFolder folder;
  auto model = small_model();
  std::vector<std::vector<uint16_t>> halves;
  auto buffers = buffers_of(model);
  for (auto& buffer : buffers) {
    auto& bits = halves.emplace_back(buffer.bytes.size() / sizeof(float), 0x3f80);  // 1 in bf16
    buffer.dtype = DType::kBF16;
    buffer.bytes = std::as_writable_bytes(std::span(bits));
  }
  write_hf_folder(folder / "model", kConfig, buffers);
  for (const auto& [option, name, dtype] :
       {std::tuple("fp32", "float32", DType::kF32), std::tuple("bf16", "bfloat16", DType::kBF16)}) {
    const auto out = folder / option;
    export_command({(folder / "model").string(), "--output", out.string(), "--dtype", option});
    const auto exported = read_hf_folder(out);
    CHECK(exported.config["torch_dtype"] == name);
    CHECK(exported.files[0].entries()[0].dtype == dtype);
    model.parameters().values().zero_();
    load_parameters(exported, buffers_of(model));
    CHECK(model.parameters().values().eq(1).all().item<bool>());
  }
  CHECK_THROWS_AS(export_command({(folder / "model").string(), "--output",
                                  (folder / "out").string(), "--dtype", "fp8"}),
                  ConfigError);
}

TEST_CASE("the tokenizer beside a model goes with it") {
  const TemporaryFolder folder;
  const auto model = write_small_model(folder);
  const std::string tokenizer = R"({"model": {"vocab": {"a": 0, "b": 28}}})";
  write_file(folder / "model" / "tokenizer.json", tokenizer);
  write_file(folder / "model" / "tokenizer_config.json", "{}");
  write_file(folder / "model" / "generation_config.json", "{\"eos_token_id\": 2}");
  write_file(folder / "model" / "README.md", "");
  REQUIRE(export_command({model, "--output", (folder / "out").string()}) == 0);
  CHECK(read_file(folder / "out" / "tokenizer.json") == tokenizer);
  CHECK(read_file(folder / "out" / "tokenizer_config.json") == "{}");
  CHECK(read_file(folder / "out" / "generation_config.json") == "{\"eos_token_id\": 2}");
  CHECK_FALSE(std::filesystem::exists(folder / "out" / "README.md"));

  write_file(folder / "model" / "tokenizer.json", R"({"model": {"vocab": {"a": 29}}})");
  CHECK_THROWS_WITH(export_command({model, "--output", (folder / "more").string()}),
                    Contains("the tokenizer has 30 ids"));
  CHECK_FALSE(std::filesystem::exists(folder / "more"));
}

TEST_CASE("a dataset's tokenizer goes with the model if it fits") {
  const TemporaryFolder folder;
  const auto model = write_small_model(folder);
  make_folder(folder / "data");
  train_vocabulary(folder / "data" / "tokenizer.model", 300);
  CHECK_THROWS_WITH(
      export_command(
          {model, "--output", (folder / "out").string(), "--data", (folder / "data").string()}),
      Contains("the tokenizer has 300 ids, but vocab_size of the model's config.json is 29"));
  CHECK_FALSE(std::filesystem::exists(folder / "out"));

  auto wide = kSmallConfig;
  wide.vocabulary = 300;
  Llama wide_model(wide, at::kCPU, ComputeType::kFP32);
  write_hf_folder(folder / "wide", to_hugging_face({wide, {.eos = {2}}}), buffers_of(wide_model));
  export_command({(folder / "wide").string(), "--output", (folder / "out").string(), "--data",
                  (folder / "data").string()});
  CHECK(read_file(folder / "out" / "tokenizer.model") ==
        read_file(folder / "data" / "tokenizer.model"));
  make_folder(folder / "empty");
  CHECK_THROWS_WITH(export_command({model, "--output", (folder / "more").string(), "--data",
                                    (folder / "empty").string()}),
                    Contains("--data") && Contains("has no tokenizer"));
}

TEST_CASE("nothing is exported over files that are there") {
  const TemporaryFolder folder;
  const auto model = write_small_model(folder);
  const auto before = read_file(folder / "model" / "model.safetensors");
  CHECK_THROWS_AS(export_command({model, "--output", model}), ConfigError);
  CHECK_THROWS_WITH(export_command({model, "--output", model}), Contains("is not empty"));
  CHECK(read_file(folder / "model" / "model.safetensors") == before);
  CHECK_THROWS_AS(
      export_command({(folder / "none").string(), "--output", (folder / "out").string()}),
      DataError);
}
