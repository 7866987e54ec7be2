#include "trainer/data/tokenizer_json/json_members.h"

#include "trainer/base/error.h"

namespace farstep {

namespace {

const nlohmann::json kNull;
constexpr int64_t kMostIds = 1 << 26;  // symbols beyond are no ids (PieceEncoder)

}  // namespace

JsonValue JsonValue::operator[](std::string_view name) const {
  if (!json_.is_object()) refuse("must be an object");
  const auto found = json_.find(name);
  auto path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  return {found == json_.end() ? kNull : *found, std::move(path)};
}

JsonValue JsonValue::at(std::size_t index) const {
  return {json_[index], fmt::format("{}[{}]", path_, index)};
}

std::size_t JsonValue::size() const {
  if (!json_.is_array()) refuse("must be an array");
  return json_.size();
}

std::string JsonValue::text() const {
  if (!json_.is_string()) refuse("must be a string");
  return json_.get<std::string>();
}

bool JsonValue::flag(bool fallback) const {
  if (json_.is_null()) return fallback;
  if (!json_.is_boolean()) refuse("must be true or false");
  return json_.get<bool>();
}

double JsonValue::number() const {
  if (!json_.is_number()) refuse("must be a number");
  return json_.get<double>();
}

int32_t JsonValue::id() const {
  if (!json_.is_number_integer()) refuse("must be the id of a token");
  const auto id = json_.get<int64_t>();
  if (id < 0 || id >= kMostIds) refuse(fmt::format("the id {} is not below {}", id, kMostIds));
  return static_cast<int32_t>(id);
}

void JsonValue::refuse(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", path_.empty() ? "the whole" : path_, what));
}

}  // namespace farstep
