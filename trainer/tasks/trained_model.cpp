#include "trainer/tasks/trained_model.h"

#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/model/shape/convnet_config.h"

namespace farstep {

namespace {

// A site with checkpoints in the folder of a run; empty if there is none.
std::filesystem::path site_in(const std::filesystem::path& run) {
  std::error_code none;
  for (std::filesystem::directory_iterator entry(run, none), end; entry != end;
       entry.increment(none)) {
    if (!resumable_checkpoints(entry->path() / kCheckpointsFolder).empty()) return entry->path();
  }
  return {};
}

}  // namespace

HfFolder trained_model(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / kHfConfigFile)) return read_hf_folder(folder);
  require_model_folder(folder);
  const auto checkpoints = resumable_checkpoints(folder / kCheckpointsFolder);
  if (checkpoints.empty()) {
    const auto site = site_in(folder);
    throw DataError(fmt::format(
        "{}: neither a model (config.json, model.safetensors) nor a site's folder with "
        "checkpoints{}",
        folder.string(), site.empty() ? "" : "; name one of its sites, such as " + site.string()));
  }
  return read_hf_folder(checkpoints.front().folder);
}

HfFolder trained_language_model(const std::filesystem::path& folder, std::string_view command) {
  auto model = trained_model(folder);
  if (is_convnet(model.config)) {
    throw DataError(
        fmt::format("{}: is of an image classifier; `farstep {}` is for language models alone, "
                    "`farstep evaluate` for both",
                    (model.path / kHfConfigFile).string(), command));
  }
  return model;
}

}  // namespace farstep
