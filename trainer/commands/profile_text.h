// A site's profile as tables that a person can read. Pure functions; thread-safe.
#pragma once

#include <string>

#include "heterogeneity/plan/site_profile.h"

namespace farstep {

// TFLOPS and memory of the devices, the step times of each beside those of the fit to them, and
// the links.
std::string profile_text(const SiteProfile& profile);

}  // namespace farstep
