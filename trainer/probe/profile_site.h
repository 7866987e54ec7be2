// Measures a site for the planner: its devices, by training steps and by the model's matrix
// products, and its links. docs/profiles.md describes each figure.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"
#include "trainer/settings/load_config.h"

namespace farstep {

struct ProfileRequest {
  bool links = false;  // all sites of the run measure them at the same time
  double seconds = 2;  // about the time of one probe
};

struct ProfiledSite {
  heterogeneity::SiteProfile profile;
  bool is_complete = false;  // false: stopped, with the figures measured until then
  std::string lost_links;    // why the links were not measured; empty if they were, or need not be
};

// Profiles the site as its run would train on it. Measures the links, then one device after the
// other. Each device has its own model, which is dropped afterwards; no file is written. A site
// without a run file must measure its links too: it meets the coordinator then, which has the run.
// A site with one measures its devices even if the other sites do not come.
//
// An emulated device is profiled at the speed that it emulates before any change of speed. Its step
// times are those of training. Its TFLOPS are divided by `times` if that is set; emulated step or
// sequence seconds leave TFLOPS unchanged. Throws ConfigError naming the device if a probe fails on
// it, else the same errors as training.
ProfiledSite profile_site(const LoadedSite& loaded, const ProfileRequest& request,
                          const std::stop_token& stop);

}  // namespace farstep
