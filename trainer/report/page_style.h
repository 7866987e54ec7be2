// The style sheet of Farstep's pages: the report's and the live one's. Light or dark as the
// reader's device, and as narrow as a phone. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace farstep {

// Sites with a colour of their own.
inline constexpr std::size_t kSiteColors = 8;

// Returns the style sheet. Drawings have classes for their colours: "compute", the names of the
// causes, and "site-0" to "site-7"; "any-site" is for the sites of a run with more.
std::string page_style();

// Returns the class of the curve at a place among `count`: "site-0" and so on, or "any-site" for
// all of more than kSiteColors. Colours that occur twice would say nothing.
std::string color_class(std::size_t place, std::size_t count);

}  // namespace farstep
