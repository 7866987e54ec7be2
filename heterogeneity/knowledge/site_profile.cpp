// A profile is made by `farstep profile` or by hand, from a data sheet. So everything but the names
// may be missing, and what is there is checked.
#include "heterogeneity/knowledge/site_profile.h"

#include <algorithm>
#include <map>
#include <set>

#include "trainer/config/config_file.h"

namespace farstep::heterogeneity {

std::string text_of(const ProfiledModel& model) {
  return fmt::format("{} parameters, sequences of {}, {}", model.parameters, model.sequence_length,
                     model.compute);
}

std::optional<double> tflops(const DeviceProfile& device) {
  if (device.fp16_tflops && device.bf16_tflops) {
    return std::max(*device.fp16_tflops, *device.bf16_tflops);
  }
  return device.fp16_tflops ? device.fp16_tflops : device.bf16_tflops;
}

// The field lists check single values; this checks values against each other.
SiteProfile site_profile_from_json(const Json& json, const std::string& file) {
  auto profile = read_json<SiteProfile>(json, file);
  const JsonPath devices{file, "devices"};
  for (std::size_t d = 0; d < profile.devices.size(); ++d) {
    const auto steps = devices.element(d).member("step_seconds");
    for (std::size_t i = 0; i < profile.devices[d].step_seconds.size(); ++i) {
      const auto& step = profile.devices[d].step_seconds[i];
      if (step.batch && *step.batch < step.micro_batch) {
        steps.element(i).member("batch").fail(fmt::format(
            "is {}; must be at least the micro-batch, {}", *step.batch, step.micro_batch));
      }
    }
  }
  const JsonPath links{file, "links"};
  std::set<std::string> peers{profile.site};
  for (std::size_t i = 0; i < profile.links.size(); ++i) {
    const auto& peer = profile.links[i].peer;
    if (!peers.insert(peer).second) {
      links.element(i).member("peer").fail(fmt::format(
          "'{}' {}", peer, peer == profile.site ? "is the site itself" : "stands twice"));
    }
  }
  return profile;
}

std::vector<SiteProfile> read_site_profiles(const std::vector<std::filesystem::path>& files) {
  std::vector<SiteProfile> profiles;
  std::map<std::string, std::string> file_of_site;
  std::size_t modelled = files.size();  // index of the first profile with a model
  // The first profile with a model sets it. Profiles from data sheets have none and go with all.
  for (const auto& file : files) {
    auto profile = site_profile_from_json(load_json(file), file.string());
    const auto [other, is_new] = file_of_site.emplace(profile.site, file.string());
    if (!is_new) {
      JsonPath{file.string(), "site"}.fail(
          fmt::format("'{}' is the site of {} too", profile.site, other->second));
    }
    if (profile.model && modelled == files.size()) {
      modelled = profiles.size();
    } else if (profile.model && *profile.model != *profiles[modelled].model) {
      JsonPath{file.string(), "model"}.fail(fmt::format(
          "is {}, but that of {} is {}: measure the sites with one run file",
          text_of(*profile.model), files[modelled].string(), text_of(*profiles[modelled].model)));
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace farstep::heterogeneity
