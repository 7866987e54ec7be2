// What to do with the folder of a new run: the commands, to be copied as they are but for the name
// of the user at each site.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/init/init_plan.h"

namespace farstep {

// The machine on which the files were written.
struct Here {
  std::filesystem::path folder;  // the working folder, absolute
  bool has_data = false;         // the run's data, and the model that it starts from, are there
};

// Returns the text for a run whose files were written into `folder`. One command brings a site all
// that it needs, if every path is below the working folder.
std::string next_steps(const InitPlan& plan, const std::filesystem::path& folder, const Here& here);

}  // namespace farstep
