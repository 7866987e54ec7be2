#include "trainer/run/profile_site.h"

#include <ATen/ATen.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "heterogeneity/profile/forked.h"
#include "heterogeneity/profile/links.h"
#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/model/parameter_layout.h"
#include "trainer/run/model_shape.h"
#include "trainer/run/profile_device.h"
#include "trainer/run/site_network.h"

namespace farstep {

namespace {

Workload workload_of(const LoadedSite& loaded, double seconds) {
  Workload workload{.run = run_config_from_json(*loaded.run, loaded.run_file), .shape = {}};
  const auto& run = workload.run;
  workload.shape = model_shape(loaded.site, run, loaded.run_file);
  const auto& pinned = run.sites[run.site_id(loaded.site.name)];
  const int64_t batch = pinned.batch.value_or(run.plan.base_batch);
  workload.micro_batch =
      std::min(batch, pinned.micro_batch.value_or(run.plan.micro_batch.value_or(batch)));
  const auto is_slice = [](const auto& device) { return device.kind == DeviceKind::kCpu; };
  workload.cpu_slices = std::ranges::count_if(loaded.site.devices, is_slice);
  workload.seconds = seconds;
  return workload;
}

// Meets the other sites and measures the ways to them; nothing if stop was requested meanwhile.
std::optional<std::vector<LinkProfile>> profile_links(const LoadedSite& loaded, double seconds,
                                                      Clock& clock, const std::stop_token& stop) {
  JoinRequest request;
  request.run = loaded.run;
  request.facts["command"] = "profile";  // keeps a site that trains apart
  const auto network = SiteNetwork::join(loaded, request, clock, stop);
  if (!network) return std::nullopt;
  const auto& sites = network->welcome().sites;
  const auto& deadlines = network->run().deadlines;
  const LinkProbe probe{.seconds = seconds};
  auto& transport = network->connect(longest_turn_seconds(static_cast<int>(sites.size()), probe) +
                                     deadlines.transfer_stall_seconds);
  const auto links = measure_links(transport, probe, clock, stop);
  if (!links) {
    network->leave(Outcome::kInterrupted, "interrupted", deadlines.leave_seconds);
    return std::nullopt;
  }
  // Who is done keeps its connections until all are.
  const auto key = [](const std::string& site) { return "profile/links/" + site; };
  network->member().put(key(loaded.site.name), "measured");
  for (const auto& site : sites) network->member().get(key(site));
  network->leave(Outcome::kDone, "", deadlines.join_seconds);
  return links;
}

// The device's profile, as far as it got, measured in a copy of the process that leaves nothing
// behind on the device; nothing if stop was requested before the first figure.
struct ProfiledDevice {
  std::optional<DeviceProfile> profile;
  ForkEnd end = ForkEnd::kDone;
};

ProfiledDevice profile_apart(const Workload& workload, const DeviceConfig& config,
                             const std::string& name, Clock& clock, const std::stop_token& stop) {
  ProfiledDevice result;
  result.end = run_forked(
      [&](const Tell& tell) {
        try {
          profile_device(workload, config, clock,
                         [&](const DeviceProfile& profile) { tell(to_json(profile).dump()); });
        } catch (const c10::Error& error) {
          throw ConfigError(
              fmt::format("{}: cannot be profiled: {}", name, error.what_without_backtrace()));
        }
      },
      [&](const std::string& text) {
        result.profile = read_json<DeviceProfile>(Json::parse(text), name);
      },
      stop);
  if (result.end == ForkEnd::kKilled) {
    throw ConfigError(
        fmt::format("{}: its probe was killed, as a rule by the system for want of memory; give "
                    "the device less memory_bytes",
                    name));
  }
  return result;
}

}  // namespace

ProfiledSite profile_site(const LoadedSite& loaded, const ProfileRequest& request,
                          const std::stop_token& stop) {
  RealClock clock;
  const auto workload = workload_of(loaded, request.seconds);
  ProfiledSite result;
  auto& profile = result.profile;
  profile.site = loaded.site.name;
  profile.model = ProfiledModel{.parameters = num_parameters(parameter_layout(workload.shape)),
                                .sequence_length = workload.run.data.sequence_length,
                                .compute = std::string(name_of(workload.run.inner.compute))};
  if (request.links) {
    const auto links = profile_links(loaded, request.seconds, clock, stop);
    if (!links) return result;
    profile.links = *links;
  }
  const auto& devices = loaded.site.devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    spdlog::info("device {} of {}", i + 1, devices.size());
    const auto name = fmt::format("site {}: devices[{}]", loaded.site.name, i);
    const auto device = profile_apart(workload, devices[i], name, clock, stop);
    if (device.profile) profile.devices.push_back(*device.profile);
    if (device.end == ForkEnd::kStopped) return result;
  }
  result.is_complete = true;
  return result;
}

}  // namespace farstep
