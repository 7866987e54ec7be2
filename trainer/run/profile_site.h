// Measures a site for the planner: its devices by real training steps and the model's own matrix
// products, and its links. docs/profiles.md tells how each figure comes about.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "heterogeneity/plan/site_profile.h"
#include "trainer/config/site_config.h"

namespace farstep {

struct ProfileRequest {
  bool links = false;  // all sites of the run do it at the same time
  double seconds = 2;  // about how long one probe may take
};

struct ProfiledSite {
  SiteProfile profile;
  bool is_complete = false;  // false: stopped; holds what was measured until then
};

// Profiles the site as its run would train on it; its run file must be there. First the links, then
// one device after the other, each with a model of its own that is dropped afterwards: nothing is
// written. An emulated device is profiled as what it plays, before any change of its speed: its
// step times are those of training, and its TFLOPS are divided by `times` where that is set;
// emulated step or sequence seconds say nothing of TFLOPS. Throws ConfigError naming the device if
// a probe fails on it, else as training would.
ProfiledSite profile_site(const LoadedSite& loaded, const ProfileRequest& request,
                          const std::stop_token& stop);

}  // namespace farstep
