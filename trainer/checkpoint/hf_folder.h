// Model folders of Hugging Face's tools: config.json with model.safetensors, or with
// model.safetensors.index.json and the shards that it lists.
#pragma once

#include <filesystem>
#include <vector>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/json_fields.h"

namespace farstep {

inline constexpr const char* kHfConfigFile = "config.json";
inline constexpr const char* kHfModelFile = "model.safetensors";

struct HfFolder {
  std::filesystem::path path;
  Json config;                         // config.json, an object
  std::vector<SafetensorsFile> files;  // together they have every tensor of the model
};

// Opens the folder. Throws DataError that names the file if one is missing or malformed, or if an
// index differs from its shards.
HfFolder read_hf_folder(const std::filesystem::path& path);

// Throws DataError unless names and shapes of the folder's tensors are those of `wanted`, whose
// bytes are not used. Two tensors may be left over, as in load_parameters().
void require_parameters(const HfFolder& folder, const NamedBuffers& wanted);

// Fills the F32 buffers of `into` from the folder's tensors, and converts halves. Throws DataError
// unless names and shapes are equal. Two tensors may be left over: rotary_emb.inv_freq, and
// lm_head.weight if config.json says tie_word_embeddings and `into` has none.
void load_parameters(const HfFolder& folder, const NamedBuffers& into);

// Writes `config` and the buffers as such a folder, which is created if necessary; replaces these
// two files. Throws DataError.
void write_hf_folder(const std::filesystem::path& path, const Json& config,
                     const NamedBuffers& parameters);

}  // namespace farstep
