// Model folders as Hugging Face's tools write and read them: config.json with model.safetensors, or
// with model.safetensors.index.json and the shards that it lists.
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/base/named_buffers.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr const char* kHfConfigFile = "config.json";
inline constexpr const char* kHfModelFile = "model.safetensors";

struct HfFolder {
  std::filesystem::path path;
  Json config;                         // config.json, an object
  std::vector<SafetensorsFile> files;  // every tensor of the model is in one of them
};

// Opens the folder. Throws DataError, naming the file, if one is missing or malformed, or an index
// does not agree with its shards.
HfFolder read_hf_folder(const std::filesystem::path& path);

// Fills the F32 buffers of `into` from the folder's tensors, converted where they are halves.
// Throws DataError unless names and shapes are the same, but that rotary_emb.inv_freq is ignored,
// and lm_head.weight where config.json says tie_word_embeddings and `into` has none.
void load_parameters(const HfFolder& folder, const NamedBuffers& into);

// Writes `config` and the buffers as such a folder, making it if needed and replacing these two
// files. Throws DataError.
void write_hf_folder(const std::filesystem::path& path, const Json& config,
                     const NamedBuffers& parameters);

}  // namespace farstep
