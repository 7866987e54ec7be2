#include "trainer/config/config_file.h"

#include "trainer/base/system/file.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

// JSON text is UTF-8. Any other string could be neither logged nor saved with the run. The library
// checks it only when it writes.
bool is_utf8(const std::string& text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

// An index may stand in brackets or after a dot: sites[1].name and sites.1.name.
std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.' || c == '[') {
      parts.emplace_back();
    } else if (c != ']') {
      parts.back() += c;
    }
  }
  return parts;
}

Json* descend(Json& json, const std::string& part, const std::string& override_text) {
  if (!json.is_array()) {
    // An override may set a member of something that the file leaves out.
    if (!json.is_object()) json = Json::object();
    return &json[part];
  }
  // Fewer than nine digits fit an integer for sure.
  const bool is_index =
      !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string::npos;
  if (!is_index || std::stoul(part) >= json.size()) {
    throw ConfigError(fmt::format("--set {}: '{}' is not an index of an array of {}", override_text,
                                  part, json.size()));
  }
  return &json[std::stoul(part)];
}

std::optional<std::string> difference_at(const std::string& path, const Json& here,
                                         const Json& there) {
  if (here == there) return std::nullopt;
  if (here.is_object() && there.is_object()) {
    for (const auto& [name, value] : here.items()) {
      const auto inner = path.empty() ? name : path + "." + name;
      if (!there.contains(name))
        return fmt::format("{}: {} here, absent there", inner, value.dump());
      if (auto found = difference_at(inner, value, there[name])) return found;
    }
    // The loop above has compared the members that both have.
    for (const auto& [name, value] : there.items()) {
      if (!here.contains(name)) {
        return fmt::format("{}: absent here, {} there", path.empty() ? name : path + "." + name,
                           value.dump());
      }
    }
    return std::nullopt;  // the same members in another order
  }
  if (here.is_array() && there.is_array() && here.size() == there.size()) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (auto found = difference_at(fmt::format("{}[{}]", path, i), here[i], there[i])) {
        return found;
      }
    }
    return std::nullopt;  // elements with the same members in another order
  }
  return fmt::format("{}: {} here, {} there", path, here.dump(), there.dump());
}

}  // namespace

Json load_json(const std::filesystem::path& file) {
  const auto text = [&file] {
    try {
      return read_file(file);
    } catch (const DataError& error) {
      // A missing config is a wrong argument, not damaged data.
      throw ConfigError(error.what());
    }
  }();
  try {
    return parse_strictly<Json>(text);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

void apply_override(Json& json, const std::string& override_text) {
  const auto equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(fmt::format("--set {}: must be PATH=VALUE", override_text));
  }
  if (!is_utf8(override_text)) {
    throw ConfigError(fmt::format("--set {}: is not UTF-8", override_text));
  }
  const auto text = override_text.substr(equals + 1);
  const auto parsed = [&] {
    try {
      return parse_if_json(text, "--set " + override_text.substr(0, equals));
    } catch (const DataError& error) {
      throw ConfigError(error.what());
    }
  }();
  Json* place = &json;
  for (const auto& part : split_path(override_text.substr(0, equals))) {
    place = descend(*place, part, override_text);
  }
  // Words without quotes are text, so that a shell needs no second pair of quotes.
  *place = parsed.value_or(Json(text));
}

std::optional<std::string> first_difference(const Json& here, const Json& there) {
  return difference_at("", here, there);
}

}  // namespace farstep
