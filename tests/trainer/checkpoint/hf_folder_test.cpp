#include "trainer/checkpoint/hf_folder.h"

#include <cstring>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/checkpoint/owned_tensors.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/safetensors_writer.h"

using namespace farstep;
using Catch::Contains;

namespace {

OwnedTensors small_model() {
  OwnedTensors tensors;
  tensors.add_values("model.embed_tokens.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  tensors.add_values("model.norm.weight", {2}, {7, 8});
  return tensors;
}

}  // namespace

TEST_CASE("an exported folder is read as it was") {
  const TemporaryFolder folder;
  const auto model = small_model();
  const Json config{{"hidden_size", 2}, {"architectures", {"LlamaForCausalLM"}}};
  for (int twice = 0; twice < 2; ++twice) {
    write_hf_folder(folder / "out" / "model", config, model.buffers());
    const auto read = read_hf_folder(folder / "out" / "model");
    CHECK(read.config == config);
    REQUIRE(read.files.size() == 1);
    CHECK(read.files[0].metadata().at("format") == "pt");
    auto copy = model.zeros();
    load_parameters(read, copy.buffers());
    CHECK(copy == model);
  }
}

TEST_CASE("shards are found through their index") {
  const TemporaryFolder folder;
  const auto model = small_model();
  const auto write_index = [&](const std::string& shard_of_norm) {
    write_file(folder / "model.safetensors.index.json",
               Json{{"metadata", {{"total_size", 32}}},
                    {"weight_map",
                     {{"model.embed_tokens.weight", "model-00001-of-00002.safetensors"},
                      {"model.norm.weight", shard_of_norm}}}}
                   .dump());
  };
  write_file(folder / "config.json", "{}");
  write_safetensors(folder / "model-00001-of-00002.safetensors", {model.buffers()[0]});
  write_safetensors(folder / "model-00002-of-00002.safetensors", {model.buffers()[1]});
  write_index("model-00002-of-00002.safetensors");
  auto copy = model.zeros();
  load_parameters(read_hf_folder(folder.path()), copy.buffers());
  CHECK(copy == model);

  write_index("model-00001-of-00002.safetensors");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("index.json: weight_map.model.norm.weight: the shard "
                             "'model-00001-of-00002.safetensors' has no such tensor; copy"));
  write_index("missing.safetensors");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("index.json: weight_map.model.norm.weight: the shard "
                             "'missing.safetensors' is not in the folder; copy"));
  // A tensor that two shards have.
  write_index("model-00002-of-00002.safetensors");
  write_safetensors(folder / "model-00002-of-00002.safetensors", model.buffers());
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("weight_map.model.embed_tokens.weight: is "
                             "'model-00001-of-00002.safetensors', but the shard "
                             "'model-00002-of-00002.safetensors' has that tensor too"));
  for (const char* bad : {"{}", "[]", "{\"weight_map\": 3}", "{\"weight_map\": {\"a\": 3}}", "{"}) {
    write_file(folder / "model.safetensors.index.json", bad);
    CHECK_THROWS_AS(read_hf_folder(folder.path()), DataError);
  }
}

TEST_CASE("an index that names a file beyond its folder is refused") {
  const TemporaryFolder folder;
  const auto inside = folder / "inside";
  write_hf_folder(inside, Json::object(), small_model().buffers());
  const auto shard = inside / kHfModelFile;
  std::filesystem::rename(shard, folder / "outside");
  for (const auto& name : {(folder / "outside").string(), std::string("../outside"),
                           std::string("a/../../outside"), std::string(".."), std::string("")}) {
    write_file(inside / "model.safetensors.index.json",
               Json{{"weight_map", {{"model.norm.weight", name}}}}.dump());
    CHECK_THROWS_WITH(read_hf_folder(inside), Contains("is not the name of a file in the folder"));
  }
}

TEST_CASE("halves are converted to fp32") {
  const TemporaryFolder folder;
  OwnedTensors halves;
  halves.add("b", DType::kBF16, {2});
  halves.add("h", DType::kF16, {1});
  const uint16_t one_and_minus_two[] = {0x3F80, 0xC000}, half[] = {0x3800};
  std::memcpy(halves.buffers()[0].bytes.data(), one_and_minus_two, 4);
  std::memcpy(halves.buffers()[1].bytes.data(), half, 2);
  write_hf_folder(folder.path(), Json::object(), halves.buffers());
  OwnedTensors expected;
  expected.add_values("b", {2}, {1, -2});
  expected.add_values("h", {1}, {0.5});
  auto copy = expected.zeros();
  load_parameters(read_hf_folder(folder.path()), copy.buffers());
  CHECK(copy == expected);
}

TEST_CASE("values become bf16 by rounding to nearest, and bf16 stays as it is") {
  const TemporaryFolder folder;
  OwnedTensors exact;
  // Ties go to the even neighbour: 1 + 2^-8 down to 1, 1 + 3 2^-8 up to 1 + 2^-6.
  exact.add_values("a", {4}, {1.00390625F, 1.01171875F, -3.0F, 1e30F});
  write_hf_folder(folder / "exact", Json::object(), exact.buffers());
  OwnedTensors halves;
  halves.add("a", DType::kBF16, {4});
  load_parameters(read_hf_folder(folder / "exact"), halves.buffers());
  uint16_t bits[4];
  std::memcpy(bits, halves.buffers()[0].bytes.data(), sizeof(bits));
  CHECK(std::vector(bits, bits + 3) == std::vector<uint16_t>{0x3F80, 0x3F82, 0xC040});
  CHECK(bits[3] == 0x714A);  // 1e30 is 0x7149F2CA in fp32

  write_hf_folder(folder / "halves", Json::object(), halves.buffers());
  auto copy = halves.zeros();
  load_parameters(read_hf_folder(folder / "halves"), copy.buffers());
  CHECK(copy == halves);
}

TEST_CASE("files beside the model are written and read as they are") {
  const TemporaryFolder folder;
  const std::vector<NamedText> files{{"tokenizer.json", "{}"},
                                     {"merges.txt", std::string(3, '\0')}};
  write_hf_folder(folder.path(), Json::object(), small_model().buffers(), files);
  const auto read = read_hf_files(folder.path(), kHfTokenizerFiles);
  REQUIRE(read.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(read[i].name == files[i].name);
    CHECK(read[i].content == files[i].content);
  }
}

TEST_CASE("names must agree both ways but for what a llama file may have more") {
  const TemporaryFolder folder;
  const auto model = small_model();
  const auto load_file = [&](const OwnedTensors& file, const Json& config) {
    write_hf_folder(folder.path(), config, file.buffers());
    auto copy = model.zeros();
    load_parameters(read_hf_folder(folder.path()), copy.buffers());
    return copy == model;
  };
  const Json untied{{"tie_word_embeddings", false}}, tied{{"tie_word_embeddings", true}};
  auto more = small_model();
  more.add("model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {4});
  CHECK(load_file(more, untied));
  more.add("lm_head.weight", DType::kF32, {3, 2});
  CHECK(load_file(more, tied));
  CHECK_THROWS_WITH(load_file(more, untied), Contains("do not belong here: lm_head.weight"));
  CHECK_THROWS_WITH(load_file(more, Json::object()), Contains("lm_head.weight"));

  auto fewer = small_model();
  fewer.buffers().pop_back();
  CHECK_THROWS_WITH(load_file(fewer, tied), Contains("lacks the tensors model.norm.weight"));

  OwnedTensors many = small_model();
  for (int i = 0; i < 9; ++i) many.add("extra" + std::to_string(i), DType::kF32, {1});
  CHECK_THROWS_WITH(load_file(many, tied), Contains("extra4 and 4 more"));

  auto other_shape = small_model();
  other_shape.buffers()[0].shape = {2, 3};
  CHECK_THROWS_WITH(load_file(other_shape, tied),
                    Contains("model.embed_tokens.weight' has shape [2, 3], not [3, 2]"));
}

TEST_CASE("a folder without its files is a DataError that names the file") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_hf_folder(folder / "none"), Contains("none: there is no such folder"));
  write_file(folder / "config.json", "{}");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("has neither model.safetensors nor") && Contains("copy the whole"));
  write_file(folder / "pytorch_model.bin", "");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("'pytorch_model.bin' is of another format: load it"));
  write_file(folder / "model-00001-of-00002.safetensors", "");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()),
                    Contains("'model-00001-of-00002.safetensors' may be a shard"));
  for (const char* bad : {"[]", "{", "", "{\"a\":1,\"a\":2}"}) {
    write_file(folder / "config.json", bad);
    CHECK_THROWS_AS(read_hf_folder(folder.path()), DataError);
  }
}

TEST_CASE("names without the prefix are a model without its head, which may be there too") {
  const TemporaryFolder folder;
  auto whole = small_model();
  whole.add_values("model.layers.0.input_layernorm.weight", {2}, {9, 10});
  const auto load_file = [&](const OwnedTensors& file, bool tied) {
    write_hf_folder(folder.path(), Json{{"tie_word_embeddings", tied}}, file.buffers());
    auto copy = whole.zeros();
    load_parameters(read_hf_folder(folder.path()), copy.buffers());
    return copy == whole;
  };
  OwnedTensors headless;
  headless.add_values("embed_tokens.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  headless.add_values("norm.weight", {2}, {7, 8});
  headless.add_values("layers.0.input_layernorm.weight", {2}, {9, 10});
  CHECK(load_file(headless, false));
  headless.add_values("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(load_file(headless, true));
  CHECK_THROWS_WITH(load_file(headless, false), Contains("do not belong here: lm_head.weight"));
  // The one matrix of both by the other name.
  OwnedTensors renamed;
  renamed.add_values("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  renamed.add_values("norm.weight", {2}, {7, 8});
  renamed.add_values("layers.0.input_layernorm.weight", {2}, {9, 10});
  CHECK(load_file(renamed, true));
  CHECK_THROWS_WITH(load_file(renamed, false), Contains("model.embed_tokens.weight"));
}

TEST_CASE("a head is apart if it differs from the embedding, whatever its type") {
  const TemporaryFolder folder;
  const auto is_apart = [&](const OwnedTensors& file, bool tied) {
    write_hf_folder(folder.path(), Json{{"tie_word_embeddings", tied}}, file.buffers());
    return has_head_apart(read_hf_folder(folder.path()));
  };
  CHECK_FALSE(is_apart(small_model(), true));
  auto same = small_model();
  same.add_values("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK_FALSE(is_apart(same, true));
  auto halves = small_model();
  halves.add("lm_head.weight", DType::kBF16, {3, 2});
  const uint16_t values[] = {0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0};  // 1 to 6
  std::memcpy(halves.buffers().back().bytes.data(), values, sizeof(values));
  CHECK_FALSE(is_apart(halves, true));
  auto other = small_model();
  other.add_values("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 7});
  CHECK(is_apart(other, true));
  CHECK_FALSE(is_apart(other, false));
  auto larger = small_model();
  larger.add_values("lm_head.weight", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(is_apart(larger, true));
}

TEST_CASE("what is no model folder is refused with the way to one") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(require_model_folder("HuggingFaceTB/SmolLM2-135M"),
                    Contains("`hf download HuggingFaceTB/SmolLM2-135M --local-dir SmolLM2-135M`"));
  CHECK_THROWS_WITH(require_model_folder(folder / "none"),
                    Contains("there is no such folder") && !Contains("hf download"));
  write_file(folder / "model.gguf", "GGUF");
  CHECK_THROWS_WITH(read_hf_folder(folder / "model.gguf"), Contains("GGUF is not read"));
  write_file(folder / "adapter_config.json", "{}");
  CHECK_THROWS_WITH(read_hf_folder(folder.path()), Contains("merge_and_unload()"));
  write_file(folder / "config.json", "{}");
  CHECK_NOTHROW(require_model_folder(folder.path()));
}
