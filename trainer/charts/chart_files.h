// The files that draw curves in a page, which the build puts into the program:
// trainer/charts/page/.
#pragma once

#include <string_view>

namespace farstep {

// The module that draws, and its style; page_style() of the report comes before the latter.
std::string_view chart_script();
std::string_view chart_css();
// What the page that compares runs does with them.
std::string_view comparison_script();

}  // namespace farstep
