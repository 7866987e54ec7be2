#include "trainer/run/profile_site.h"

#include <ATen/ATen.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "heterogeneity/profile/links.h"
#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/model/parameter_layout.h"
#include "trainer/run/model_shape.h"
#include "trainer/run/profile_device.h"
#include "trainer/run/site_network.h"

namespace farstep {

namespace {

bool has_figures(const DeviceProfile& device) {
  return device.max_micro_batch || !device.step_seconds.empty();
}

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
    try {
      DeviceProfile device;
      const bool is_done = profile_device(workload, devices[i], clock, stop, device);
      if (is_done || has_figures(device)) profile.devices.push_back(device);
      if (!is_done) return result;
    } catch (const c10::Error& error) {
      throw ConfigError(fmt::format("site {}: devices[{}]: cannot be profiled: {}",
                                    loaded.site.name, i, error.what_without_backtrace()));
    }
  }
  result.is_complete = true;
  return result;
}

}  // namespace farstep
