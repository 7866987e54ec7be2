// Prints a site's profile as tables. Pure functions; thread-safe.
#pragma once

#include <string>

#include "heterogeneity/knowledge/site_profile.h"

namespace farstep {

// Returns tables of the devices' TFLOPS and memory, of each one's step times beside the fitted
// ones, and of the links.
std::string profile_text(const heterogeneity::SiteProfile& profile);

}  // namespace farstep
