// The style sheet of Farstep's pages: the report's and the live one's. Light or dark as the
// reader's device, and as narrow as a phone. A pure function; thread-safe.
#pragma once

#include <string>

namespace farstep {

// Returns the style sheet. Drawings have classes for their colours: "compute", the names of the
// causes, and "site-0" to "site-7".
std::string page_style();

}  // namespace farstep
