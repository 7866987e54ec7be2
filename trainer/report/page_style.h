// The style sheet of Farstep's pages: the report's and the live one's. Light or dark as the
// reader's device, and as narrow as a phone. A pure function; thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace farstep {

// Sites with a colour of their own.
inline constexpr std::size_t kSiteColors = 8;

// Returns the style sheet. Drawings have classes for their colours: "compute", the names of the
// causes, and "site-0" to "site-7"; "any-site" is for the sites of a run with more.
std::string page_style();

}  // namespace farstep
