#include "trainer/manual/completion.h"

#include <algorithm>

namespace farstep {

namespace {

// "a | b | c", as list_fields() writes the names of an enum.
std::vector<std::string> names_in(const std::string& limits) {
  constexpr std::string_view kBetween = " | ";
  std::vector<std::string> names;
  if (limits.find(kBetween) == limits.npos) return names;
  for (std::size_t at = 0; at <= limits.size();) {
    const auto end = std::min(limits.find(kBetween, at), limits.size());
    names.push_back(limits.substr(at, end - at));
    at = end + kBetween.size();
  }
  return names;
}

}  // namespace

std::vector<SettingValues> settings_to_complete(const CommandHelp& command) {
  std::vector<SettingValues> settings;
  for (const auto& field : command.settings) {
    if (field.path.find('[') != field.path.npos) continue;
    auto values = field.type.starts_with("boolean") ? std::vector<std::string>{"true", "false"}
                                                    : names_in(field.limits);
    settings.push_back({field.path, std::move(values)});
  }
  return settings;
}

}  // namespace farstep
