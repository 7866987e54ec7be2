#include "trainer/config/json_fields.h"

#include <algorithm>
#include <cmath>

#include "trainer/config/did_you_mean.h"

namespace farstep {

std::string Rules::text() const {
  const bool has_least = std::isfinite(least);
  const bool has_most = std::isfinite(most);
  if (has_least && has_most) {
    return fmt::format("{} {} to {}", above_least ? "above" : "from", least, most);
  }
  if (has_least) return fmt::format("{} {}", above_least ? "above" : "at least", least);
  if (has_most) return fmt::format("at most {}", most);
  return hex_digits > 0 ? fmt::format("{} lower-case hexadecimal digits", hex_digits) : "";
}

void JsonPath::fail(const std::string& message) const {
  const auto where = path.empty() ? std::string("(top)") : path;
  throw ConfigError(fmt::format("{}{}: {}", file.empty() ? "" : file + ": ", where, message));
}

namespace detail {

namespace {

// Returns "; did you mean ...", or an empty text if no field is similar to `name`.
std::string hint_at(const std::string& name, const NearFields& fields) {
  const auto& [known, inside, former] = fields;
  const auto renamed = std::ranges::find(former, name, &FormerField::name);
  if (renamed != former.end()) return fmt::format("; did you mean '{}'?", renamed->now);
  // A field that has moved into a struct has the same name there.
  const auto moved =
      std::ranges::find_if(inside, [&](const auto& path) { return path.ends_with("." + name); });
  if (moved != inside.end()) return fmt::format("; did you mean '{}'?", *moved);
  return did_you_mean(name, known);
}

void check_range(double number, const Json& json, const Rules& rules, const JsonPath& path) {
  if (!rules.allow(number)) {
    path.fail(fmt::format("is {}; must be {}", json.dump(), rules.text()));
  }
}

}  // namespace

void refuse_unknown_members(const Json& json, const NearFields& fields, const JsonPath& path) {
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(fields.known, name) != fields.known.end()) continue;
    path.member(name).fail("is not a known field" + hint_at(name, fields));
  }
}

void require_object(const Json& json, const JsonPath& path) {
  if (!json.is_object()) path.fail("must be an object");
}

void read_scalar(const Json& json, bool& value, const Rules& /*rules*/, const JsonPath& path) {
  if (!json.is_boolean()) path.fail(fmt::format("is {}; must be true or false", json.dump()));
  value = json.get<bool>();
}

void read_scalar(const Json& json, int64_t& value, const Rules& rules, const JsonPath& path) {
  const bool fits = json.is_number_integer() &&
                    !(json.is_number_unsigned() &&
                      json.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()));
  if (!fits) path.fail(fmt::format("is {}; must be a whole number", json.dump()));
  // As a double, like the limits. Integers in configs stay far below 2^53.
  check_range(static_cast<double>(json.get<int64_t>()), json, rules, path);
  value = json.get<int64_t>();
}

void read_scalar(const Json& json, double& value, const Rules& rules, const JsonPath& path) {
  if (!json.is_number() || !std::isfinite(json.get<double>())) {
    path.fail(fmt::format("is {}; must be a number", json.dump()));
  }
  check_range(json.get<double>(), json, rules, path);
  value = json.get<double>();
}

void read_scalar(const Json& json, std::string& value, const Rules& rules, const JsonPath& path) {
  if (!json.is_string()) path.fail(fmt::format("is {}; must be a string", json.dump()));
  value = json.get<std::string>();
  if (rules.required && value.empty()) path.fail("must not be empty");
  const bool is_hex = value.find_first_not_of("0123456789abcdef") == value.npos;
  if (rules.hex_digits > 0 && !(is_hex && value.size() == rules.hex_digits)) {
    path.fail(fmt::format("is {}; must be {}", json.dump(), rules.text()));
  }
}

void read_scalar(const Json& json, Json& value, const Rules& /*rules*/, const JsonPath& /*path*/) {
  value = json;
}

std::size_t read_enum(const Json& json, std::span<const std::string_view> names,
                      const JsonPath& path) {
  // The list is complete exactly when the message needs it.
  std::string listed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (json.is_string() && json.get_ref<const std::string&>() == names[i]) return i;
    listed += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  path.fail(fmt::format("is {}; must be one of {}", json.dump(), listed));
}

}  // namespace detail

std::string help_text(const std::vector<FieldHelp>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.path.size());
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}  {}", row.path, width, row.doc);
    if (!row.limits.empty()) text += fmt::format(" ({})", row.limits);
    text += row.fallback == "required" ? " [required]\n" : fmt::format(" [{}]\n", row.fallback);
  }
  return text;
}

}  // namespace farstep
