// Limits on JSON text that others wrote, checked before it is parsed.
//
// The parser itself takes any depth and any number of members. Code that visits its result is
// recursive, so deep nesting overflows the stack. Members in order are found by search, so many of
// them in one object take hours. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

namespace farstep {

struct JsonLimits {
  std::size_t depth = 64;        // of arrays and objects within each other
  std::size_t members = 10'000;  // of one object
  std::size_t values = std::numeric_limits<std::size_t>::max();  // of the whole text
};

// Throws DataError with the byte if the text is beyond a limit. Takes one pass and no memory. Text
// that is not JSON may pass: the parser refuses it.
void check_json_limits(std::string_view text, const JsonLimits& limits = {});

}  // namespace farstep
