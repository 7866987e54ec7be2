// Sites of which this or that is known.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/plan/planner.h"

namespace farstep {

inline DeviceProfile device_of(std::optional<double> tflops, std::optional<int64_t> max_micro_batch,
                               std::vector<StepTime> steps = {}) {
  DeviceProfile device;
  device.name = "GPU";
  device.fp16_tflops = tflops;
  device.max_micro_batch = max_micro_batch;
  device.step_seconds = std::move(steps);
  return device;
}

inline SiteKnowledge site_of(const std::string& name, std::vector<DeviceProfile> devices) {
  SiteKnowledge site;
  site.site = name;
  site.profile.emplace();
  site.profile->site = name;
  site.profile->devices = std::move(devices);
  return site;
}

// A site of one device with a step of four sequences.
inline SiteKnowledge timed_site(const std::string& name, double seconds) {
  return site_of(name, {device_of({}, {}, {{4, {}, seconds}})});
}

inline SiteKnowledge unknown_site(const std::string& name) {
  SiteKnowledge site;
  site.site = name;
  return site;
}

inline constexpr double kPaperSeconds[] = {0.239, 0.25, 0.104, 0.201};

// Table 1 of Shin et al., device by device, with the step times that their measurements imply.
inline std::vector<SiteKnowledge> paper_sites() {
  const auto devices = [](std::vector<double> tflops, int64_t max_micro_batch, double seconds) {
    std::vector<DeviceProfile> devices;
    for (const double each : tflops) {
      devices.push_back(device_of(each, max_micro_batch, {{4, {}, seconds}}));
    }
    return devices;
  };
  return {site_of("node1", devices({113.8, 113.8, 113.8, 113.8}, 8, kPaperSeconds[0])),
          site_of("node2", devices({113.8, 113.8, 113.8, 130}, 8, kPaperSeconds[1])),
          site_of("node3", devices({165, 165, 165, 165}, 32, kPaperSeconds[2])),
          site_of("node4", devices({142, 142, 125, 125}, 16, kPaperSeconds[3]))};
}

inline PlanConfig plan_config(Policy policy) {
  PlanConfig config;
  config.policy = policy;
  return config;
}

// The view of these sites at one of them.
inline View view_of_sites(std::span<const SiteKnowledge> sites) {
  View view;
  for (const auto& site : sites) view.members.push_back(site.site);
  return view;
}

// A planner of sites that are the members all the time.
class FixedPlanner {
 public:
  FixedPlanner(const PlanConfig& config, const std::vector<SiteKnowledge>& sites)
      : view_(view_of_sites(sites)), planner_(config, sites, view_) {}

  const RoundPlan& plan() const { return planner_.plan(view_); }
  std::vector<SiteKnowledge> sites() const { return planner_.sites(view_); }
  void observe(std::span<const RoundTiming> timings) { planner_.observe(view_, timings); }
  void plan_rest(std::span<const RoundTiming> timings) { planner_.plan_rest(view_, timings); }
  void keep_plan() { planner_.keep_plan(); }
  Json state() const { return planner_.state(); }
  void restore(const Json& state) { planner_.restore(state); }

 private:
  View view_;
  Planner planner_;
};

inline std::vector<SiteKnowledge> unknown_sites(std::size_t count) {
  std::vector<SiteKnowledge> sites;
  for (std::size_t id = 0; id < count; ++id) {
    sites.push_back(unknown_site("site" + std::to_string(id)));
  }
  return sites;
}

// The timings of a round of `plan` whose steps last `seconds`.
inline std::vector<RoundTiming> timings_of(const RoundPlan& plan,
                                           const std::vector<double>& seconds) {
  std::vector<RoundTiming> timings;
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    const auto& site = plan.sites[place];
    timings.push_back({site.local_steps, site.batch, site.micro_batch, seconds[place], 0});
  }
  return timings;
}

inline std::vector<int64_t> steps_of(const RoundPlan& plan) {
  std::vector<int64_t> steps;
  for (const auto& site : plan.sites) steps.push_back(site.local_steps);
  return steps;
}

// Idle time as a share of all sites' time.
inline double idle_share(const RoundPlan& plan) {
  return total_idle_seconds(plan).value_or(NAN) /
         (plan.round_seconds.value_or(NAN) * static_cast<double>(plan.sites.size()));
}

}  // namespace farstep
