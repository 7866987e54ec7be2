// The files of the live page, which the build puts into the program: trainer/watch/page/.
#pragma once

#include <string_view>

namespace farstep {

std::string_view page_html();
// The style of the live page alone; page_style() of the report comes before it.
std::string_view page_css();
std::string_view page_script();
std::string_view page_timeline_script();
std::string_view page_icon();

}  // namespace farstep
