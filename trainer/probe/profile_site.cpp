#include "trainer/probe/profile_site.h"

#include <ATen/ATen.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "heterogeneity/profile/forked.h"
#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"
#include "trainer/peers/agreed_compute.h"
#include "trainer/peers/site_peers.h"
#include "trainer/probe/meet_sites.h"
#include "trainer/probe/profile_device.h"

namespace farstep {

namespace {

Workload workload_of(const LoadedSite& loaded, const RunConfig& run, const std::string& run_source,
                     double seconds) {
  Workload workload{.run = run, .model = nullptr};
  // The work that the run would give this site, so that the planner interpolates near it.
  const auto pinned = run.site(loaded.site.name);
  const int64_t batch = pinned.batch.value_or(run.plan.base_batch);
  workload.micro_batch =
      std::min(batch, pinned.micro_batch.value_or(run.plan.micro_batch.value_or(batch)));
  const auto is_slice = [](const auto& device) { return device.kind == DeviceKind::kCpu; };
  workload.products = loaded.site.cpu.products;
  workload.cpu_slices = std::ranges::count_if(loaded.site.devices, is_slice);
  workload.seconds = seconds;
  workload.run.inner.compute = own_compute(run.inner.compute, loaded.site);
  workload.model = probed_model(loaded.site, workload.run, run_source);
  if (is_slow_compute(run.inner.compute, loaded.site)) spdlog::warn(kSlowComputeText);
  return workload;
}

// Returns the device's profile as far as it was measured, in a copy of the process that leaves no
// state on the device. Returns nullopt if a stop was requested before the first figure.
struct ProfiledDevice {
  std::optional<heterogeneity::DeviceProfile> profile;
  heterogeneity::ForkEnd end = heterogeneity::ForkEnd::kDone;
};

ProfiledDevice profile_apart(const Workload& workload, const DeviceConfig& config,
                             const std::string& name, Clock& clock, const std::stop_token& stop) {
  ProfiledDevice result;
  result.end = heterogeneity::run_forked(
      [&](const heterogeneity::Tell& tell) {
        try {
          profile_device(workload, config, clock, [&](const heterogeneity::DeviceProfile& profile) {
            tell(to_json(profile).dump());
          });
          // LibTorch's messages carry a backtrace, which hides the reason at their beginning.
        } catch (const c10::Error& error) {
          throw ConfigError(
              fmt::format("{}: cannot be profiled: {}", name, error.what_without_backtrace()));
        }
      },
      [&](const std::string& text) {
        result.profile = read_untrusted<heterogeneity::DeviceProfile>(text, name);
      },
      stop);
  if (result.end == heterogeneity::ForkEnd::kKilled) {
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
  ProfiledSite result;
  auto& profile = result.profile;
  profile.site = loaded.site.name;
  std::optional<Workload> known;  // before the meeting, so that its mistakes are reported first
  if (loaded.run) {
    const auto run = run_config_from_json(*loaded.run, loaded.run_file);
    known = workload_of(loaded, run, loaded.run_file, request.seconds);
  }
  if (request.links) {
    try {
      const auto meeting =
          meet_sites(loaded, {.command = "profile", .seconds = request.seconds}, clock, stop);
      if (!meeting) return result;
      profile.links = meeting->notes[meeting->view.self].links;
      known = workload_of(loaded, meeting->run, std::string(kRunSource), request.seconds);
    } catch (const PeerError& error) {
      if (!known) throw;
      result.lost_links = error.what();
      spdlog::error("the links are not measured, the devices are: {}", result.lost_links);
    }
  }
  FARSTEP_CHECK(known, "a profile without a run");
  const auto& workload = *known;
  profile.model =
      heterogeneity::ProfiledModel{.parameters = workload.model->num_parameters(),
                                   .sequence_length = workload.run.targets_per_example(),
                                   .compute = std::string(name_of(workload.run.inner.compute))};
  const auto& devices = loaded.site.devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    spdlog::info("device {} of {}", i + 1, devices.size());
    const auto name = fmt::format("site {}: devices[{}]", loaded.site.name, i);
    const auto device = profile_apart(workload, devices[i], name, clock, stop);
    if (device.profile) profile.devices.push_back(*device.profile);
    if (device.end == heterogeneity::ForkEnd::kStopped) return result;
  }
  result.is_complete = true;
  return result;
}

}  // namespace farstep
