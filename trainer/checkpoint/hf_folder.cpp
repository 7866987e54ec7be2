#include "trainer/checkpoint/hf_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "trainer/base/system/file.h"
#include "trainer/checkpoint/json_file.h"
#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// An index, which belongs to the shards beside it.
class Index {
 public:
  explicit Index(const fs::path& folder) : folder_(folder), file_(folder / kIndex) {
    const auto index = load_json_data(file_);
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
      refuse("has no object weight_map");
    }
    for (const auto& [tensor, shard] : index["weight_map"].items()) {
      const auto name = shard.is_string() ? shard.get<std::string>() : "";
      // A folder that somebody sent must not make this program read files beyond it.
      if (name.empty() || fs::path(name).filename() != name || name == "." || name == "..") {
        refuse(fmt::format("weight_map.{}: {} is not the name of a file in the folder", tensor,
                           shard.dump()));
      }
      shard_of_[tensor] = name;
      tensors_of_[name].insert(tensor);
    }
  }

  // Compares the index with each shard in both directions: a stale index is a common fault.
  std::vector<SafetensorsFile> open_shards() const {
    std::vector<SafetensorsFile> files;
    for (const auto& [shard, tensors] : tensors_of_) {
      std::error_code wrong;  // a name that no file can have, for one
      if (!fs::exists(folder_ / shard, wrong)) {
        refuse(fmt::format("weight_map.{}: the shard '{}' is not in the folder", *tensors.begin(),
                           shard));
      }
      require_agreement(files.emplace_back(folder_ / shard), shard, tensors);
    }
    return files;
  }

 private:
  // So a tensor that two shards have is found too.
  void require_agreement(const SafetensorsFile& file, const std::string& shard,
                         std::set<std::string> missing) const {
    for (const auto& entry : file.entries()) {
      if (missing.erase(entry.name) > 0) continue;
      const auto other = shard_of_.find(entry.name);
      refuse(fmt::format(
          "weight_map.{}: {}, but the shard '{}' has that tensor too", entry.name,
          other == shard_of_.end() ? "is absent" : fmt::format("is '{}'", other->second), shard));
    }
    if (!missing.empty()) {
      refuse(
          fmt::format("weight_map.{}: the shard '{}' has no such tensor", *missing.begin(), shard));
    }
  }

  [[noreturn]] void refuse(const std::string& message) const {
    throw DataError(
        fmt::format("{}: {}; copy the index and every shard of the model again, from one place",
                    file_.string(), message));
  }

  const fs::path folder_, file_;
  std::map<std::string, std::string> shard_of_;
  std::map<std::string, std::set<std::string>> tensors_of_;
};

// Looks for what else may have the weights, to say what to do.
[[noreturn]] void refuse_without_weights(const fs::path& path) {
  std::string remedy = "copy the whole folder of the model";
  for (const auto& entry : fs::directory_iterator(path)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".safetensors")) {
      remedy = fmt::format("'{}' may be a shard, which needs its index", name);
      break;
    }
    if (name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".gguf")) {
      remedy = fmt::format(
          "'{}' is of another format: load it with transformers, and save it with "
          "save_pretrained(), which writes safetensors",
          name);
    }
  }
  throw DataError(
      fmt::format("{}: has neither {} nor {}; {}", path.string(), kHfModelFile, kIndex, remedy));
}

bool is_tied(const Json& config) {
  const auto found = config.find("tie_word_embeddings");
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

// A tensor of a folder.
struct Source {
  const SafetensorsFile* file = nullptr;
  const SafetensorsEntry* entry = nullptr;
};
using Sources = std::map<std::string, Source>;  // by the name in a whole model

// Old exports contain rotary frequencies, which are derived values. The files of a language model
// that was saved without its head have names without the prefix, which the head's never has.
Sources sources_of(const HfFolder& folder) {
  Sources sources;
  bool lacks_prefix = false;
  for (const auto& file : folder.files) {
    for (const auto& entry : file.entries()) {
      if (entry.name.ends_with("rotary_emb.inv_freq")) continue;
      sources[entry.name] = {&file, &entry};
      lacks_prefix = lacks_prefix || entry.name.starts_with("layers.");
    }
  }
  if (!lacks_prefix) return sources;
  Sources renamed;
  for (const auto& [name, source] : sources) {
    renamed[name == kHead ? name : "model." + name] = source;
  }
  return renamed;
}

// Returns where each wanted tensor is. A tied model may have its one matrix under either name or
// both.
Sources fitting_sources(const HfFolder& folder, const NamedBuffers& wanted) {
  auto sources = sources_of(folder);
  const bool wants_head = std::any_of(wanted.begin(), wanted.end(),
                                      [](const auto& buffer) { return buffer.name == kHead; });
  if (is_tied(folder.config) && !wants_head && sources.contains(kHead)) {
    sources.try_emplace(kEmbedding, sources[kHead]);
    sources.erase(kHead);
  }
  std::vector<std::string> names;
  for (const auto& [name, source] : sources) names.push_back(name);
  // All names and shapes are checked before the first value is copied: a refused folder changes
  // nothing.
  require_same_names(folder.path.string(), names, wanted);
  for (const auto& buffer : wanted) {
    const auto& [file, entry] = sources.at(buffer.name);
    require_same_shape(file->path().string(), *entry, buffer);
  }
  return sources;
}

// Returns a tensor's values. Throws DataError if they are not floating-point numbers.
std::vector<float> values_of(const Source& source) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(source.entry->shape)));
  source.file->copy_as_f32(source.entry->name, values);
  return values;
}

// A tensor at a time, so that a model is never in memory twice.
void load_rounded(const Source& source, const NamedBuffer& into) {
  const auto exact = values_of(source);
  auto* const values = reinterpret_cast<BF16*>(into.bytes.data());
  std::transform(exact.begin(), exact.end(), values, rounded<BF16>);
}

}  // namespace

void require_model_folder(const fs::path& path) {
  std::error_code none;
  const auto text = path.string();
  if (fs::is_regular_file(path, none)) {
    throw DataError(
        fmt::format("{}: is a file{}; a model is a folder with config.json and model.safetensors",
                    text, path.extension() == ".gguf" ? ", and GGUF is not read" : ""));
  }
  if (fs::exists(path / "adapter_config.json", none) && !fs::exists(path / kHfConfigFile, none)) {
    throw DataError(fmt::format(
        "{}: is an adapter, not a model: merge it into its base model first, by merge_and_unload() "
        "of peft, and name the folder that save_pretrained() makes of that",
        text));
  }
  if (fs::exists(path, none)) return;
  // A hub's names are OWNER/MODEL.
  const bool is_id = path.is_relative() && std::distance(path.begin(), path.end()) == 2 &&
                     *path.begin() != "." && *path.begin() != "..";
  throw DataError(fmt::format(
      "{}: there is no such folder{}", text,
      is_id
          ? fmt::format("; if it is a model of the Hugging Face hub, fetch it first: `hf download "
                        "{} --local-dir {}`",
                        text, path.filename().string())
          : ""));
}

HfFolder read_hf_folder(const fs::path& path) {
  require_model_folder(path);
  HfFolder folder{path, load_json_data(path / kHfConfigFile), {}};
  if (!folder.config.is_object()) {
    throw DataError(fmt::format("{}: is not an object", (path / kHfConfigFile).string()));
  }
  // One file takes precedence over an index, as in `transformers`.
  if (fs::exists(path / kHfModelFile)) {
    folder.files.emplace_back(path / kHfModelFile);
  } else if (fs::exists(path / kIndex)) {
    folder.files = Index(path).open_shards();
  } else {
    refuse_without_weights(path);
  }
  return folder;
}

std::vector<NamedText> read_hf_files(const fs::path& path,
                                     std::span<const std::string_view> names) {
  std::vector<NamedText> files;
  for (const auto name : names) {
    const auto file = path / name;
    if (fs::exists(file)) files.push_back({std::string(name), read_file(file)});
  }
  return files;
}

bool has_head_apart(const HfFolder& folder) {
  if (!is_tied(folder.config)) return false;
  const auto sources = sources_of(folder);
  const auto head = sources.find(kHead), embedding = sources.find(kEmbedding);
  if (head == sources.end() || embedding == sources.end()) return false;
  const auto& one = *head->second.entry;
  const auto& other = *embedding->second.entry;
  if (one.dtype == other.dtype && std::ranges::equal(one.bytes, other.bytes)) return false;
  return values_of(head->second) != values_of(embedding->second);
}

void require_parameters(const HfFolder& folder, const NamedBuffers& wanted) {
  fitting_sources(folder, wanted);
}

void load_parameters(const HfFolder& folder, const NamedBuffers& into) {
  const auto sources = fitting_sources(folder, into);
  for (const auto& buffer : into) {
    const auto& source = sources.at(buffer.name);
    if (buffer.dtype == DType::kBF16) {
      load_rounded(source, buffer);
      continue;
    }
    FARSTEP_CHECK(buffer.dtype == DType::kF32, "buffer '{}' is neither F32 nor BF16", buffer.name);
    source.file->copy_as_f32(source.entry->name, {reinterpret_cast<float*>(buffer.bytes.data()),
                                                  buffer.bytes.size() / sizeof(float)});
  }
}

// config.json comes last: whoever finds it finds all.
void write_hf_folder(const fs::path& path, const Json& config, const NamedBuffers& parameters,
                     std::span<const NamedText> files) {
  make_folder(path);
  write_safetensors(path / kHfModelFile, parameters, {{"format", "pt"}});
  for (const auto& file : files) write_file_durably(path / file.name, file.content);
  write_file_durably(path / kHfConfigFile, config.dump(2) + "\n");
}

}  // namespace farstep
