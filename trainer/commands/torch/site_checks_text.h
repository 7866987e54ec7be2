// The list of a site's checks, for the help of the commands that make them.
#pragma once

#include <string>

namespace farstep {

// Returns `title` and a line for each check.
std::string site_checks_text(const std::string& title);

}  // namespace farstep
