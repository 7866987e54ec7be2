// One line of JSON, of which only some members are wanted. It is read as Python's json module reads
// it: NaN, Infinity, numbers of any size and halves of surrogate pairs are JSON. What nobody asks
// for is passed over, and is neither decoded nor checked to be UTF-8.
//
// Time and memory are linear in the line, whatever it has. Thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farstep {

enum class JsonType { kMissing, kNull, kBoolean, kNumber, kString, kList, kObject };

// Returns what a message calls it: "null", "a number".
std::string_view name_of(JsonType type);

// A value as it stands in its text.
struct JsonValue {
  JsonType type = JsonType::kMissing;
  std::string_view raw;
};

class JsonLine {
 public:
  // Reads the line, which must outlive this.
  explicit JsonLine(std::string_view line);

  // Returns the byte at which the line ceases to be JSON, line.size() if it is cut short; nullopt
  // if it is JSON.
  std::optional<std::size_t> fault() const { return fault_; }
  // Returns what the line is.
  JsonType type() const { return type_; }
  // Returns the object's member, the last one of that name; none has kMissing.
  JsonValue member(std::string_view name) const;

 private:
  JsonType type_ = JsonType::kMissing;
  std::optional<std::size_t> fault_;
  std::vector<std::pair<std::string_view, JsonValue>> members_;  // names as they stand in the line
};

// Returns the text of a string, with U+FFFD in place of half a surrogate pair. Bytes are as they
// stand, so it may not be UTF-8. `value` is a string of a JsonLine without a fault.
std::string text_of(const JsonValue& value);

// Returns the elements of a list of a JsonLine without a fault.
std::vector<JsonValue> elements_of(const JsonValue& list);

}  // namespace farstep
