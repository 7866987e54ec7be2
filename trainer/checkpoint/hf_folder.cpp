#include "trainer/checkpoint/hf_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "trainer/base/system/file.h"
#include "trainer/checkpoint/json_file.h"
#include "trainer/checkpoint/safetensors_writer.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kHead = "lm_head.weight";

// Compares the index with each shard in both directions: a stale index is a common fault.
std::vector<SafetensorsFile> open_shards(const fs::path& path) {
  const auto index_file = path / kIndex;
  const auto index = load_json_data(index_file);
  const auto refuse = [&index_file](const std::string& message) {
    throw DataError(fmt::format("{}: {}", index_file.string(), message));
  };
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    refuse("has no weight_map");
  }
  std::map<std::string, std::set<std::string>> names_of_shard;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) refuse(fmt::format("weight_map.{}: is not a file's name", tensor));
    const auto name = shard.get<std::string>();
    // A folder that somebody sent must not make this program read files beyond it.
    if (name.empty() || fs::path(name).filename() != name || name == "." || name == "..") {
      refuse(
          fmt::format("weight_map.{}: '{}' is not the name of a file in the folder", tensor, name));
    }
    names_of_shard[name].insert(tensor);
  }
  std::vector<SafetensorsFile> files;
  for (const auto& [shard, names] : names_of_shard) {
    const auto& file = files.emplace_back(path / shard);
    std::set<std::string> present;
    for (const auto& entry : file.entries()) present.insert(entry.name);
    if (present != names) {
      refuse(fmt::format("lists {} tensors in {}, which has {}; their names differ", names.size(),
                         shard, present.size()));
    }
  }
  return files;
}

bool is_tied(const Json& config) {
  const auto found = config.find("tie_word_embeddings");
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

HfFolder read_hf_folder(const fs::path& path) {
  HfFolder folder{path, load_json_data(path / kHfConfigFile), {}};
  if (!folder.config.is_object()) {
    throw DataError(fmt::format("{}: is not an object", (path / kHfConfigFile).string()));
  }
  // One file takes precedence over an index, as in `transformers`.
  if (fs::exists(path / kHfModelFile) || !fs::exists(path / kIndex)) {
    folder.files.emplace_back(path / kHfModelFile);
  } else {
    folder.files = open_shards(path);
  }
  return folder;
}

namespace {

// Returns the file of each tensor. Old exports contain rotary frequencies, and tied models may
// contain the head; both are derived values.
std::map<std::string, const SafetensorsFile*> fitting_files(const HfFolder& folder,
                                                            const NamedBuffers& wanted) {
  const bool wants_head = std::any_of(wanted.begin(), wanted.end(),
                                      [](const auto& buffer) { return buffer.name == kHead; });
  const bool ignores_head = is_tied(folder.config) && !wants_head;
  std::vector<std::string> names;
  std::map<std::string, const SafetensorsFile*> file_of;
  for (const auto& file : folder.files) {
    for (const auto& entry : file.entries()) {
      if (entry.name.ends_with("rotary_emb.inv_freq")) continue;
      if (ignores_head && entry.name == kHead) continue;
      names.push_back(entry.name);
      file_of[entry.name] = &file;
    }
  }
  // All names and shapes are checked before the first value is copied: a refused folder changes
  // nothing.
  require_same_names(folder.path.string(), names, wanted);
  for (const auto& buffer : wanted) {
    const auto& file = *file_of.at(buffer.name);
    require_same_shape(file.path().string(), file.at(buffer.name), buffer);
  }
  return file_of;
}

}  // namespace

void require_parameters(const HfFolder& folder, const NamedBuffers& wanted) {
  fitting_files(folder, wanted);
}

void load_parameters(const HfFolder& folder, const NamedBuffers& into) {
  const auto file_of = fitting_files(folder, into);
  for (const auto& buffer : into) {
    FARSTEP_CHECK(buffer.dtype == DType::kF32, "buffer '{}' is not F32", buffer.name);
    const auto& file = *file_of.at(buffer.name);
    file.copy_as_f32(buffer.name, {reinterpret_cast<float*>(buffer.bytes.data()),
                                   buffer.bytes.size() / sizeof(float)});
  }
}

void write_hf_folder(const fs::path& path, const Json& config, const NamedBuffers& parameters) {
  make_folder(path);
  write_safetensors(path / kHfModelFile, parameters, {{"format", "pt"}});
  write_file_durably(path / kHfConfigFile, config.dump(2) + "\n");
}

}  // namespace farstep
