// Config files as JSON documents: loading, --set overrides, and comparing two of them.
//
// Pure functions but for reading the file; thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/json_fields.h"

namespace farstep {

// Parses a JSON file. Throws ConfigError with line and column if it is not JSON (a member that
// stands twice included), or if the file cannot be read.
Json load_json(const std::filesystem::path& file);

// Applies one override "a.b[0].c=VALUE" ("a.b.0.c" too) to `json`: VALUE is JSON if it parses as
// such, else a string. Missing objects on the way are made, so that the strict reader judges the
// result. Throws ConfigError on a malformed override or an array index that does not exist.
void apply_override(Json& json, const std::string& override_text);

// The JSON path of the first difference in field order, with both values: "outer.rounds: 10 here,
// 20 there"; nothing if they are equal.
std::optional<std::string> first_difference(const Json& here, const Json& there);

}  // namespace farstep
