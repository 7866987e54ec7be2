#include "trainer/model/language/model_folder.h"

#include <cstring>
#include <functional>

#include "tests/support/catch.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// Folders that `transformers` has saved, which scripts/reference_folders.py describes.
const fs::path kSaved = source_folder() / "tests/golden/hugging_face";
constexpr const char* kNames[] = {"llama3_sharded", "tied_halves", "heads_apart"};

at::Tensor values_of(const SafetensorsFile& file, const std::string& name) {
  auto values = at::empty(file.at(name).shape, at::kFloat);
  file.copy_as_f32(name,
                   {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
  return values;
}

// The logits of a folder's model, for the tokens of the saved folder `name`; and those of
// `transformers`.
struct Logits {
  Logits(const LanguageFolder& folder, const std::string& name) {
    const SafetensorsFile golden(kSaved / (name + ".safetensors"));
    const auto& entry = golden.at("tokens");
    auto tokens = at::empty(entry.shape, at::kLong);
    std::memcpy(tokens.mutable_data_ptr<int64_t>(), entry.bytes.data(), entry.bytes.size());
    own = open_model(folder)->logits(tokens).detach();
    wanted = values_of(golden, "logits");
  }
  double error() const { return ((own - wanted).norm() / wanted.norm()).item<double>(); }

  at::Tensor own, wanted;
};

// A copy of a saved folder that a test may damage.
class DamagedCopy {
 public:
  explicit DamagedCopy(const std::string& name) {
    fs::copy(kSaved / name, folder_ / "model", fs::copy_options::recursive);
  }
  fs::path operator/(const std::string& name) const { return path() / name; }
  fs::path path() const { return folder_ / "model"; }
  // What reading the folder says.
  std::string refusal() const {
    try {
      read_language_folder(path());
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  void change_json(const std::string& name, const std::function<void(Json&)>& change) const {
    auto json = Json::parse(read_file(*this / name));
    change(json);
    write_file(*this / name, json.dump());
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a folder that transformers saved has its logits") {
  for (const auto* name : kNames) {
    INFO(name);
    const auto folder = read_language_folder(kSaved / name);
    CHECK(Logits(folder, name).error() < 2e-6);
  }
}

TEST_CASE("what transformers saved is understood: shards, halves, scaling, ties, ids") {
  const auto sharded = read_language_folder(kSaved / "llama3_sharded");
  CHECK(sharded.folder.files.size() == 4);
  CHECK(sharded.config.shape.rope_scaling ==
        RopeScaling{.factor = 8, .original_max_position_embeddings = 64});
  CHECK(sharded.config.facts == HfFacts{.positions = 512, .bos = 38, .pad = {}, .eos = {37, 39}});
  const auto tied = read_language_folder(kSaved / "tied_halves");
  CHECK(tied.config.shape.tied_embeddings);
  CHECK(tied.config.facts == HfFacts{.positions = 8192, .bos = 1, .pad = 2, .eos = {2}});
  const auto apart = read_language_folder(kSaved / "heads_apart");
  CHECK(apart.config.shape.head_size() == 12);
}

TEST_CASE("a written folder is read with the same config, bits and logits") {
  for (const auto* name : kNames) {
    INFO(name);
    const TemporaryFolder output;
    const auto source = read_language_folder(kSaved / name);
    write_language_folder(output / "out", source, WeightType::kFP32, {});
    const auto copy = read_language_folder(output / "out");
    CHECK(copy.config == source.config);
    CHECK(at::equal(open_model(copy)->parameters().values(),
                    open_model(source)->parameters().values()));
    CHECK(at::equal(Logits(copy, name).own, Logits(source, name).own));
    CHECK(copy.folder.config["torch_dtype"] == "float32");
  }
}

TEST_CASE("a model in bf16 is written in bf16 without a change and others are rounded") {
  for (const auto* name : kNames) {
    INFO(name);
    const TemporaryFolder output;
    const auto source = read_language_folder(kSaved / name);
    write_language_folder(output / "out", source, WeightType::kBF16, {});
    const auto copy = read_language_folder(output / "out");
    CHECK(copy.folder.config["torch_dtype"] == "bfloat16");
    for (const auto& entry : copy.folder.files[0].entries()) CHECK(entry.dtype == DType::kBF16);
    const auto exact = open_model(source)->parameters().values().clone();
    const auto rounded = open_model(copy)->parameters().values().clone();
    CHECK(at::equal(rounded, exact.to(at::kBFloat16).to(at::kFloat)));
    CHECK(at::equal(rounded, exact) == (std::string(name) == "llama3_sharded"));
  }
}

TEST_CASE("a folder is not written over files") {
  const TemporaryFolder output;
  write_file(output / "mine", "");
  const auto source = read_language_folder(kSaved / "tied_halves");
  CHECK_THROWS_WITH(write_language_folder(output.path(), source, WeightType::kFP32, {}),
                    Contains("is not empty; name a new folder"));
}

TEST_CASE("a damaged shard or index is refused with file and member and what to do") {
  const std::string shard = "model-00002-of-00004.safetensors";
  const std::string index = "model.safetensors.index.json";
  {
    const DamagedCopy copy("llama3_sharded");
    fs::remove(copy / shard);
    CHECK_THAT(copy.refusal(),
               Contains(index + ": weight_map.model.layers.") &&
                   Contains("the shard '" + shard + "' is not in the folder; copy"));
  }
  {
    const DamagedCopy copy("llama3_sharded");
    fs::resize_file(copy / shard, fs::file_size(copy / shard) - 1);
    CHECK_THAT(copy.refusal(), Contains(shard + ": offset") && Contains("copy it again"));
  }
  {
    const DamagedCopy copy("llama3_sharded");
    fs::copy_file(copy / "model-00001-of-00004.safetensors", copy / shard,
                  fs::copy_options::overwrite_existing);
    CHECK_THAT(copy.refusal(), Contains("has that tensor too; copy the index and every shard"));
  }
  {
    const DamagedCopy copy("llama3_sharded");
    copy.change_json(index, [](Json& json) { json["weight_map"].erase("lm_head.weight"); });
    CHECK_THAT(copy.refusal(), Contains("weight_map.lm_head.weight: is absent, but the shard"));
  }
  {
    const DamagedCopy copy("llama3_sharded");
    fs::remove(copy / index);
    CHECK_THAT(copy.refusal(), Contains("may be a shard, which needs its index"));
  }
}

TEST_CASE("a config that does not describe the tensors is refused before memory is allocated") {
  const auto refusal = [](const std::string& member, const Json& value) {
    const DamagedCopy copy("tied_halves");
    copy.change_json("config.json", [&](Json& json) { json[member] = value; });
    return copy.refusal();
  };
  // 10^13 values would not fit any memory.
  CHECK_THAT(refusal("vocab_size", 10'000'000), Contains("model.embed_tokens.weight' has shape"));
  CHECK_THAT(refusal("num_hidden_layers", 10'000), Contains("lacks the tensors model.layers.1."));
  CHECK_THAT(refusal("num_hidden_layers", 10'001), Contains("config.json: num_hidden_layers: is"));
  CHECK_THAT(refusal("tie_word_embeddings", false), Contains("lacks the tensors lm_head.weight"));
  CHECK_THAT(refusal("head_dim", 6), Contains("q_proj.weight' has shape [24, 24], not [18, 24]"));
  CHECK_THAT(refusal("intermediate_size", 21), Contains("gate_proj.weight' has shape [20, 24]"));
  CHECK_THAT(refusal("quantization_config", {{"quant_method", "awq"}}),
             Contains("config.json: quantization_config: is") && Contains("in bf16, fp16 or fp32"));
}

TEST_CASE("a tokenizer with more ids than the model is refused") {
  const DamagedCopy copy("tied_halves");
  const auto& shape = kSmallConfig;  // of 29 ids
  CHECK_NOTHROW(require_tokenizer_fits(copy.path(), shape));
  write_file(copy / "tokenizer.json", R"({"model": {"vocab": {"a": 0, "b": 28}}})");
  CHECK_NOTHROW(require_tokenizer_fits(copy.path(), shape));
  write_file(copy / "tokenizer.json",
             R"({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 29, "content": "</s>"}]})");
  CHECK_THROWS_WITH(require_tokenizer_fits(copy.path(), shape),
                    Contains("the tokenizer has 30 ids, but vocab_size of the model's config.json "
                             "is 29; take the tokenizer"));
}

}  // namespace farstep
