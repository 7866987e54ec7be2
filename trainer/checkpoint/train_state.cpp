// Three files of tensors by their use: the model for everybody, the outer state that is equal at
// all sites, and the state of this site alone. So the first is a Hugging Face folder that other
// programs open.
#include "trainer/checkpoint/train_state.h"

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/checkpoint/json_file.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_writer.h"

namespace farstep {

namespace {

constexpr const char* kOuter = "outer.safetensors";
constexpr const char* kSite = "site.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kRun = "run.json";

// Rises with every change that an older program would misread. Other versions are refused.
constexpr int64_t kFormat = 2;

struct StateFile {
  int64_t format = kFormat;
  TrainProgress progress;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("format", format, "version of the checkpoint's layout",
          required(in_range(kFormat, kFormat)));
    visit("progress", progress, "where the site stands", kRequired);
  }
};

WrittenFile write_text(const std::filesystem::path& path, const std::string& text) {
  write_file_durably(path, text);
  return {static_cast<int64_t>(text.size()), checksum(std::as_bytes(std::span(text)))};
}

}  // namespace

// The manifest comes last: it proves that all files before it are complete.
SavedCheckpoint save_checkpoint(const std::filesystem::path& root, const TrainState& state,
                                const std::stop_token& stop) {
  const auto& progress = state.progress;
  const auto folder = begin_checkpoint(root, progress.round, progress.step);
  Manifest manifest;
  // The transformers library requires "format".
  manifest.add(kHfModelFile,
               write_safetensors(folder / kHfModelFile, state.global, {{"format", "pt"}}, stop));
  // theta_global and its momentum are files of their own: they are the same at all sites, the rest
  // is not.
  manifest.add(kOuter, write_safetensors(folder / kOuter, state.outer, {}, stop));
  manifest.add(kSite, write_safetensors(folder / kSite, state.site, {}, stop));
  manifest.add(kHfConfigFile, write_text(folder / kHfConfigFile, state.model_config));
  for (const auto& file : state.model_files) {
    manifest.add(file.name, write_text(folder / file.name, file.content));
  }
  manifest.add(kRun, write_text(folder / kRun, state.run_config.dump(2) + "\n"));
  manifest.add(kState,
               write_text(folder / kState, to_json(StateFile{kFormat, progress}).dump(2) + "\n"));
  write_manifest(folder, manifest);
  return {publish_checkpoint(folder), manifest.total_bytes()};
}

TrainProgress load_progress(const CheckpointEntry& entry) {
  const auto file = entry.folder / kState;
  auto progress = load_fields<StateFile>(file).progress;
  if (progress.round != entry.round || progress.step != entry.step) {
    throw DataError(fmt::format("{}: is of round {} and step {}, unlike its folder's name",
                                file.string(), progress.round, progress.step));
  }
  return progress;
}

void restore_progress(const CheckpointEntry& entry, const std::function<void()>& restore) {
  try {
    restore();
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{}: {}. Resume with the settings and the version that wrote it, or move the folder {} "
        "away to resume from the checkpoint before it",
        (entry.folder / kState).string(), error.what(), entry.folder.string()));
  }
}

Json load_run_config(const CheckpointEntry& entry) {
  return load_json_data(entry.folder / kRun);
}

void load_checkpoint(const CheckpointEntry& entry, TrainState& into) {
  const auto& folder = entry.folder;
  into.progress = load_progress(entry);
  into.run_config = load_run_config(entry);
  into.model_config = read_file(folder / kHfConfigFile);
  SafetensorsFile(folder / kHfModelFile).copy_all(into.global);
  SafetensorsFile(folder / kOuter).copy_all(into.outer);
  SafetensorsFile(folder / kSite).copy_all(into.site);
}

void load_global(const CheckpointEntry& entry, const NamedBuffers& global,
                 const NamedBuffers& outer) {
  verify_manifest(entry.folder);
  SafetensorsFile(entry.folder / kHfModelFile).copy_all(global);
  SafetensorsFile(entry.folder / kOuter).copy_all(outer);
}

}  // namespace farstep
