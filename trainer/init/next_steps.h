// What to do with the folder of a new run: the commands, to be copied as they are but for the name
// of the user at each site.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/init/init_plan.h"

namespace farstep {

// Returns the text for a run whose files were written into `folder`.
std::string next_steps(const InitPlan& plan, const std::filesystem::path& folder);

}  // namespace farstep
