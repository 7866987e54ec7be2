// Sites of which this or that is known.
#pragma once

#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"

namespace farstep::heterogeneity {

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

inline std::vector<SiteKnowledge> unknown_sites(std::size_t count) {
  std::vector<SiteKnowledge> sites;
  for (std::size_t place = 0; place < count; ++place) {
    sites.push_back(unknown_site("site" + std::to_string(place)));
  }
  return sites;
}

}  // namespace farstep::heterogeneity
