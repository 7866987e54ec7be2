#include "trainer/config/site_config.h"

#include <array>
#include <set>

#include "trainer/config/config_file.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kDeviceKinds{"cpu", "cuda"};
constexpr std::string_view kRunPrefix = "run.";

std::string absolute_under(const fs::path& folder, const std::string& path) {
  return (folder / path).lexically_normal().string();
}

// A config file with those overrides that are its own; the rest, without prefix, go to `run`.
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

Json load_run(const std::string& run_file, const std::vector<std::string>& overrides) {
  auto json = load_json(run_file);
  for (const auto& text : overrides) apply_override(json, text);
  // Read once, so that a mistake is named with this file; printed again, so that copies of one run
  // compare equal whichever defaults they spell out.
  return to_json(run_config_from_json(json, run_file));
}

void validate(const EmulateConfig& emulate, const JsonPlace& place) {
  const int given = emulate.step_seconds.has_value() + emulate.sequence_seconds.has_value() +
                    emulate.times.has_value();
  if (given != 1) place.fail("must have one of step_seconds, sequence_seconds and times");
  const auto& changes = emulate.changes;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    if (changes[i].step > changes[i - 1].step) continue;
    place.member("changes").element(i).member("step").fail(fmt::format(
        "is {}; must be above the one before, {}", changes[i].step, changes[i - 1].step));
  }
}

void validate(const EmulatedLink& emulate, const JsonPlace& place) {
  if (!emulate.rate_bits_per_second && emulate.delay_seconds == 0) {
    place.fail("must have rate_bits_per_second or delay_seconds, or be null");
  }
  if (emulate.loss > 0 && emulate.delay_seconds == 0) {
    place.member("loss").fail("needs delay_seconds: a lost packet costs a round trip");
  }
}

void validate_cores(const std::vector<DeviceConfig>& devices, const JsonPlace& place) {
  std::set<int64_t> taken;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& cores = devices[i].cores;
    if (cores.empty()) continue;
    const auto list = place.element(i).member("cores");
    if (devices[i].kind != DeviceKind::kCpu) list.fail("only a cpu slice has cores");
    if (std::ssize(cores) != devices[i].threads) {
      list.fail(fmt::format("has {} cores for {} threads; must have one a thread", cores.size(),
                            devices[i].threads));
    }
    for (std::size_t k = 0; k < cores.size(); ++k) {
      if (cores[k] < 0) list.element(k).fail(fmt::format("is {}; must be at least 0", cores[k]));
      if (!taken.insert(cores[k]).second) {
        list.element(k).fail(fmt::format("is {}, which stands twice", cores[k]));
      }
    }
  }
}

void validate(const SiteConfig& site, const std::string& file) {
  const JsonPlace place{file, ""};
  if (site.network.address.empty() == site.network.interface.empty()) {
    place.member("network").fail(
        "must have either address or interface: the one that the other sites can reach");
  }
  if (const auto& emulate = site.network.emulate) {
    validate(*emulate, place.member("network").member("emulate"));
  }
  for (std::size_t i = 0; i < site.devices.size(); ++i) {
    if (const auto& emulate = site.devices[i].emulate) {
      validate(*emulate, place.member("devices").element(i).member("emulate"));
    }
  }
  validate_cores(site.devices, place.member("devices"));
  if (site.coordinator.host && site.run.empty()) {
    place.member("run").fail("is missing; the site that hosts the coordinator holds the run file");
  }
}

}  // namespace

std::span<const std::string_view> enum_names(DeviceKind) {
  return kDeviceKinds;
}

LoadedSite load_site(const fs::path& file, const std::vector<std::string>& overrides) {
  std::vector<std::string> run_overrides;
  const auto json = load_with_overrides(file, overrides, run_overrides);
  LoadedSite loaded{read_json<SiteConfig>(json, file.string()), std::nullopt, ""};
  auto& site = loaded.site;
  validate(site, file.string());
  const auto folder = fs::absolute(file).parent_path();
  for (auto* path : {&site.data, &site.models, &site.output}) *path = absolute_under(folder, *path);
  if (!site.profile.empty()) site.profile = absolute_under(folder, site.profile);
  if (!site.run.empty()) {
    site.run = absolute_under(folder, site.run);
    loaded.run_file = site.run;
    loaded.run = load_run(site.run, run_overrides);
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
  config.run = absolute_under(folder, config.run);
  if (!config.output.empty()) config.output = absolute_under(folder, config.output);
  loaded.run = load_run(config.run, run_overrides);
  return loaded;
}

}  // namespace farstep
