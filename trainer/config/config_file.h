// Config files as JSON documents: loading, --set overrides, and the difference of two files.
//
// Pure functions, except that one reads the file; thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/json_fields.h"

namespace farstep {

// Parses a JSON file. Throws ConfigError with line and column if it is not JSON, if an object has a
// member twice, or if the file cannot be read.
Json load_json(const std::filesystem::path& file);

// Applies one override "a.b[0].c=VALUE" (or "a.b.0.c") to `json`. VALUE is JSON if it parses as
// JSON, else a string. Missing objects on the path are added, so the strict reader checks the
// result. Throws ConfigError on a malformed override or an index out of range.
void apply_override(Json& json, const std::string& override_text);

// Returns the JSON path of the first difference in field order, with both values: "outer.rounds: 10
// here, 20 there". Returns nullopt if the documents are equal.
std::optional<std::string> first_difference(const Json& here, const Json& there);

}  // namespace farstep
