// Parsing of JSON text that others wrote.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/config/json_builder.h"
#include "trainer/config/json_fields.h"
#include "trainer/config/json_limits.h"

namespace farstep {

// Returns what is wrong, by an exception of nlohmann's, as a message or a log line may quote it: as
// printable ASCII of limited length. The exception's own text repeats bytes of what it has read.
std::string json_fault(const nlohmann::json::exception& error);

namespace detail {

// As parse_strictly(), but throws AnyJson::exception if the text is not JSON.
template <typename AnyJson>
AnyJson parse_within_limits(std::string_view text, const JsonLimits& limits) {
  // Before the parser, which allocates memory for whatever stands there.
  check_json_limits(text, limits);
  JsonBuilder<AnyJson> builder;
  AnyJson::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace detail

// Returns the text as an `AnyJson` of nlohmann's. Throws DataError if it is beyond a limit, an
// object has two members of one name, or it is not JSON. Pure; thread-safe.
template <typename AnyJson>
AnyJson parse_strictly(std::string_view text, const JsonLimits& limits = {}) {
  try {
    return detail::parse_within_limits<AnyJson>(text, limits);
  } catch (const typename AnyJson::exception& error) {
    throw DataError("not valid JSON: " + json_fault(error));
  }
}

// Returns the text as JSON; nullopt if it is none. Throws DataError, which begins with
// `what`, if it is beyond a limit or has two members of one name. Pure; thread-safe.
inline std::optional<Json> parse_if_json(std::string_view text, const std::string& what,
                                         const JsonLimits& limits = {}) {
  try {
    return detail::parse_within_limits<Json>(text, limits);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", what, error.what()));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Returns the text of another process as JSON. Throws DataError, which begins with `what`, if it is
// beyond a limit, has two members of one name, or is not JSON. Pure; thread-safe.
inline Json parse_untrusted(std::string_view text, const std::string& what,
                            const JsonLimits& limits = {}) {
  try {
    return detail::parse_within_limits<Json>(text, limits);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{} is refused: {}", what, error.what()));
  } catch (const Json::parse_error& error) {
    // Not json_fault(), which repeats characters of the text.
    throw DataError(fmt::format("{} is not JSON at byte {}", what, error.byte));
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{} is not JSON: a number is too large", what));
  }
}

// Returns the struct that the text of another process describes. Throws DataError as
// parse_untrusted() does, and with the JSON path if a member does not fit.
template <HasFields T>
T read_untrusted(std::string_view text, const std::string& what, const JsonLimits& limits = {}) {
  const auto json = parse_untrusted(text, what, limits);
  try {
    return read_json<T>(json, what);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

}  // namespace farstep
