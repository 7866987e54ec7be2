#include "trainer/settings/load_config.h"

#include "trainer/config/config_file.h"
#include "wan/sockets/host_port.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunPrefix = "run.";
constexpr const char* kJournalFile = "coordinator.journal";

std::string absolute_under(const fs::path& folder, const std::string& path) {
  return (folder / path).lexically_normal().string();
}

// Loads a config file with its own overrides; the others, without prefix, go to `run`.
Json load_with_overrides(const fs::path& file, const std::vector<std::string>& overrides,
                         std::vector<std::string>& run_overrides) {
  auto json = load_json(file);
  for (const auto& text : overrides) {
    if (text.starts_with(kRunPrefix)) {
      run_overrides.push_back(text.substr(kRunPrefix.size()));
    } else {
      apply_override(json, text);
    }
  }
  return json;
}

Json load_run(const std::string& run_file, const std::vector<std::string>& overrides,
              bool has_stand_bys) {
  auto json = load_json(run_file);
  for (const auto& text : overrides) apply_override(json, text);
  // Read once, so that an error names this file. Printed again, so that copies of one run compare
  // equal, whichever defaults they contain.
  const auto run = run_config_from_json(json, run_file);
  if (has_stand_bys) require_majority(run, run_file);
  return to_json(run);
}

}  // namespace

LoadedSite load_site(const fs::path& file, const std::vector<std::string>& overrides) {
  std::vector<std::string> run_overrides;
  const auto json = load_with_overrides(file, overrides, run_overrides);
  LoadedSite loaded{read_json<SiteConfig>(json, file.string()), std::nullopt, "", file.string()};
  auto& site = loaded.site;
  site.validate(file.string());
  const auto folder = fs::absolute(file).parent_path();
  // Paths are relative to their file, so that a program may start anywhere.
  for (auto* path : {&site.models, &site.output}) *path = absolute_under(folder, *path);
  auto& journal = site.coordinator.journal;
  journal =
      journal.empty() ? (site.folder() / kJournalFile).string() : absolute_under(folder, journal);
  for (auto* path : {&site.data, &site.profile, &site.network.keys}) {
    if (!path->empty()) *path = absolute_under(folder, *path);
  }
  for (auto& source : site.mixture) source.folder = absolute_under(folder, source.folder);
  if (!site.run.empty()) {
    site.run = absolute_under(folder, site.run);
    loaded.run_file = site.run;
    loaded.run = load_run(site.run, run_overrides, site.coordinators().size() > 1);
  } else if (!run_overrides.empty()) {
    throw ConfigError(fmt::format("--set run.{}: {} names no run file to change",
                                  run_overrides.front(), file.string()));
  }
  return loaded;
}

LoadedCoordinator load_coordinator(const fs::path& file,
                                   const std::vector<std::string>& overrides) {
  std::vector<std::string> run_overrides;
  const auto json = load_with_overrides(file, overrides, run_overrides);
  LoadedCoordinator loaded{read_json<CoordinatorConfig>(json, file.string()), {}};
  const auto folder = fs::absolute(file).parent_path();
  auto& config = loaded.coordinator;
  wan::parse_endpoint(file.string() + ": endpoint", config.endpoint);
  config.run = absolute_under(folder, config.run);
  if (!config.keys.empty()) config.keys = absolute_under(folder, config.keys);
  if (!config.output.empty()) config.output = absolute_under(folder, config.output);
  if (!config.journal.empty()) {
    config.journal = absolute_under(folder, config.journal);
  } else if (!config.output.empty()) {
    config.journal = (fs::path(config.output) / kJournalFile).string();
  }
  loaded.run = load_run(config.run, run_overrides, config.place.has_value());
  return loaded;
}

}  // namespace farstep
