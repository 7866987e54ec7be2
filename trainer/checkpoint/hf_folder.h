// Model folders of Hugging Face's tools: config.json with model.safetensors, or with
// model.safetensors.index.json and the shards that it lists; and what lies beside them.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/base/named_text.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr const char* kHfConfigFile = "config.json";
inline constexpr const char* kHfModelFile = "model.safetensors";

// The files that a tokenizer may consist of. The first two have its vocabulary.
inline constexpr std::array<std::string_view, 8> kHfTokenizerFiles{"tokenizer.model",
                                                                   "tokenizer.json",
                                                                   "tokenizer_config.json",
                                                                   "special_tokens_map.json",
                                                                   "added_tokens.json",
                                                                   "vocab.json",
                                                                   "merges.txt",
                                                                   "chat_template.jinja"};
inline constexpr std::string_view kHfGenerationFile = "generation_config.json";

struct HfFolder {
  std::filesystem::path path;
  Json config;                         // config.json, an object
  std::vector<SafetensorsFile> files;  // together they have every tensor of the model
};

// Throws DataError, with what to do, if the path is nothing, a file such as a GGUF, or an adapter
// where the folder of a model is wanted.
void require_model_folder(const std::filesystem::path& path);

// Opens the folder. Throws DataError that names the file, and the member of an index, if one is
// missing or malformed, or if an index differs from its shards.
HfFolder read_hf_folder(const std::filesystem::path& path);

// Reads the files of those names that are in the folder. Throws DataError if one cannot be read.
std::vector<NamedText> read_hf_files(const std::filesystem::path& path,
                                     std::span<const std::string_view> names);

// Whether config.json says that head and embedding are one (tie_word_embeddings), and the files
// have a head with other values all the same. Then the head counts, as in `transformers` since
// version 5; older ones leave it out. Throws DataError if a shape or a type is not that of weights.
bool has_head_apart(const HfFolder& folder);

// Throws DataError unless names and shapes of the folder's tensors are those of `wanted`, whose
// bytes are not used. See load_parameters() for the exceptions.
void require_parameters(const HfFolder& folder, const NamedBuffers& wanted);

// Fills the F32 or BF16 buffers of `into` from the folder's tensors. Halves become fp32 as they
// are; other values become bf16 by rounding to nearest, ties to even. Throws DataError unless names
// and shapes are equal. Files of a model without its head have names without "model.". Two tensors
// may be left over: rotary_emb.inv_freq, and lm_head.weight if config.json says
// tie_word_embeddings and `into` has none; where the embedding is missing, it is that one.
void load_parameters(const HfFolder& folder, const NamedBuffers& into);

// Writes `config`, the buffers and `files` as such a folder, which is created if necessary;
// replaces files of these names. Throws DataError.
void write_hf_folder(const std::filesystem::path& path, const Json& config,
                     const NamedBuffers& parameters, std::span<const NamedText> files = {});

}  // namespace farstep
