// Reads members of a tokenizer.json, which has many more than Farstep needs.
//
// Errors are DataErrors that begin with the value's path in the file: "model.merges[3]: ...".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace farstep {

constexpr int kMostDepth = 8;  // of sequences in each other: each takes a part of the stack

// A JSON value and its path. Objects are sorted maps here: a vocabulary has 100,000 members.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const nlohmann::json& json() const { return json_; }
  bool is_null() const { return json_.is_null(); }

  // Returns the member of an object; null if the object has none. Refuses what is no object.
  JsonValue operator[](std::string_view name) const;
  // Returns the entry of an array.
  JsonValue at(std::size_t index) const;
  // Returns the number of entries. Refuses what is no array.
  std::size_t size() const;

  // Return the value. Refuse another type; a flag that is missing is `fallback`.
  std::string text() const;
  bool flag(bool fallback) const;
  double number() const;
  // Returns an id of a token, in [0, 2^26).
  int32_t id() const;

  // Throws a DataError with the path.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const nlohmann::json& json_;
  std::string path_;
};

}  // namespace farstep
