#include "trainer/model/language/model_folder.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/system/free_memory.h"
#include "trainer/checkpoint/json_file.h"
#include "trainer/model/device.h"
#include "trainer/model/language/companion_files.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// The parameters as buffers without memory.
NamedBuffers named_specs(const std::vector<ParameterSpec>& layout) {
  NamedBuffers buffers;
  for (const auto& spec : layout) buffers.push_back({spec.name, DType::kF32, spec.shape, {}});
  return buffers;
}

}  // namespace

// The tensors are checked before anybody allocates memory for the sizes that config.json states.
LanguageFolder check_language_folder(HfFolder folder) {
  auto config = from_hugging_face(folder.config, (folder.path / kHfConfigFile).string());
  std::string caution;
  if (has_head_apart(folder)) {
    config.shape.tied_embeddings = false;
    caution = fmt::format(
        "{}: says tie_word_embeddings, but the weights have a head (lm_head.weight) unlike the "
        "embedding: the head counts, as in transformers 5; older versions leave it out",
        (folder.path / kHfConfigFile).string());
  }
  auto layout = llama_layout(config.shape);
  require_parameters(folder, named_specs(layout));
  return {std::move(folder), std::move(config), std::move(layout), std::move(caution)};
}

LanguageFolder read_language_folder(const fs::path& path) {
  return check_language_folder(read_hf_folder(path));
}

std::vector<int64_t> end_tokens(const LanguageFolder& folder) {
  const auto file = folder.folder.path / kHfGenerationFile;
  std::vector<int64_t> ends;
  if (fs::exists(file)) {
    ends = generation_ends(load_json_data(file), file.string(), folder.config.shape.vocabulary);
  }
  return ends.empty() ? folder.config.facts.eos : ends;
}

void require_tokenizer_fits(const fs::path& path, const LlamaConfig& shape) {
  const auto ids = tokenizer_ids(path);
  if (!ids || *ids <= shape.vocabulary) return;
  throw DataError(
      fmt::format("{}: the tokenizer has {} ids, but vocab_size of the model's {} is {}; take the "
                  "tokenizer that the model was trained with",
                  path.string(), *ids, kHfConfigFile, shape.vocabulary));
}

std::unique_ptr<Llama> open_model(const LanguageFolder& folder, const DeviceConfig& device,
                                  ComputeType compute) {
  auto model = std::make_unique<Llama>(folder.config.shape, open_device(device), compute);
  auto& parameters = model->parameters();
  load_parameters(folder.folder,
                  named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
  return model;
}

void write_language_folder(const fs::path& output, const LanguageFolder& folder, WeightType type,
                           std::span<const NamedText> files) {
  // Refused, since an overwritten checkpoint would be lost to the run.
  if (fs::exists(output) && !fs::is_empty(output)) {
    throw ConfigError(fmt::format("--output {}: is not empty; name a new folder", output.string()));
  }
  const bool is_bf16 = type == WeightType::kBF16;
  auto buffers = named_specs(folder.layout);
  const DType dtype = is_bf16 ? DType::kBF16 : DType::kF32;
  const int64_t count = num_parameters(folder.layout);
  const auto all_bytes = static_cast<std::size_t>(count) * size_of(dtype);
  require_free_ram(static_cast<int64_t>(all_bytes),
                   fmt::format("{}: a model of {} parameters", folder.folder.path.string(), count),
                   "end other programs, or use a machine with more memory");
  std::vector<std::byte> memory(all_bytes);
  std::span<std::byte> rest(memory);
  for (auto& buffer : buffers) {
    const auto bytes = static_cast<std::size_t>(num_elements(buffer.shape)) * size_of(dtype);
    buffer.dtype = dtype;
    buffer.bytes = rest.first(bytes);
    rest = rest.subspan(bytes);
  }
  load_parameters(folder.folder, buffers);
  auto config = to_hugging_face(folder.config);
  config["torch_dtype"] = is_bf16 ? "bfloat16" : "float32";
  write_hf_folder(output, config, buffers, files);
}

}  // namespace farstep
