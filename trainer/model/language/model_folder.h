// The folder of a language model: the one way in which `model.from` and every command read it, and
// `import` and `export` write it.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/named_text.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/model/device_config.h"
#include "trainer/model/llama/llama.h"
#include "trainer/model/shape/hf_config.h"

namespace farstep {

enum class WeightType { kFP32, kBF16 };
inline std::span<const std::string_view> enum_names(WeightType) {
  static constexpr std::array<std::string_view, 2> kNames{"fp32", "bf16"};
  return kNames;
}

// An open folder whose config.json Farstep can represent, and which has its tensors.
struct LanguageFolder {
  HfFolder folder;
  HfConfig config;  // of the tensors: with a head of its own if they have one
  std::vector<ParameterSpec> layout;
  std::string caution;  // what a user is to know of it; empty: nothing
};

// Reads the config of an open folder, and checks names and shapes of its tensors against it. Throws
// DataError as from_hugging_face() and require_parameters() do.
LanguageFolder check_language_folder(HfFolder folder);

// Opens a folder and checks it so.
LanguageFolder read_language_folder(const std::filesystem::path& path);

// Returns the tokens that end a text of the model: those of its generation_config.json, or else of
// config.json. Empty: neither names one. Throws DataError for a malformed file.
std::vector<int64_t> end_tokens(const LanguageFolder& folder);

// Throws DataError naming `path` if the tokenizer there has more ids than the model's vocabulary.
void require_tokenizer_fits(const std::filesystem::path& path, const LlamaConfig& shape);

// Opens the model on `device`, which the calling thread uses: by default on one thread of the CPU.
// Throws DataError, or ConfigError if there is no such device.
std::unique_ptr<Llama> open_model(const LanguageFolder& folder, const DeviceConfig& device = {},
                                  ComputeType compute = ComputeType::kFP32);

// Writes the model with weights of that type, and `files`, as a folder that `transformers` opens.
// Throws ConfigError if `output` is not empty, DataError for other reasons.
void write_language_folder(const std::filesystem::path& output, const LanguageFolder& folder,
                           WeightType type, std::span<const NamedText> files);

}  // namespace farstep
