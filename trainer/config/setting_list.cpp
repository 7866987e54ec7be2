#include "trainer/config/setting_list.h"

namespace farstep::detail {

// A text that would be read as a number needs its quotes.
std::string setting_text(const std::string& path, const Json& value) {
  if (!value.is_string()) return path + "=" + value.dump();
  const auto text = value.get<std::string>();
  return path + "=" + (Json::accept(text) ? value.dump() : text);
}

}  // namespace farstep::detail
