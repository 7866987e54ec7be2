#include "trainer/config/json_limits.h"

#include <vector>

#include "trainer/base/error.h"

namespace farstep {

namespace {

[[noreturn]] void fail(std::size_t byte, std::string_view what, std::size_t most) {
  throw DataError(fmt::format("byte {}: {}; {} at most", byte, what, most));
}

}  // namespace

// Counts opening brackets and commas outside strings; both bound what a parser allocates. The text
// need not be valid: the parser refuses what is wrong in another way.
void check_json_limits(std::string_view text, const JsonLimits& limits) {
  struct Open {
    bool is_object;
    std::size_t entries;
  };
  std::vector<Open> open;
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      // The next character is escaped, and may be a quote.
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back({c == '{', 1});
      if (open.size() > limits.depth)
        fail(i, "arrays and objects are nested too deeply", limits.depth);
      ++values;
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ',' && !open.empty()) {
      auto& [is_object, entries] = open.back();
      if (++entries > limits.members && is_object)
        fail(i, "an object has too many members", limits.members);
      ++values;
    }
    if (values > limits.values) fail(i, "there are too many values", limits.values);
  }
}

}  // namespace farstep
