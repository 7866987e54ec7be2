// Visitors over a field list: strict reading from JSON, printing to JSON, and help text.
//
// All errors are ConfigErrors of the form "FILE: JSON.PATH: what is wrong and what would be right".
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/config/fields.h"

namespace farstep {

using Json = nlohmann::ordered_json;

// The path of a value in a file, for messages.
struct JsonPath {
  std::string file;  // empty where the caller adds it, see in_file()
  std::string path;  // "outer.momentum", "devices[0].kind"; empty is the whole file

  JsonPath member(std::string_view name) const {
    return {file, path.empty() ? std::string(name) : path + "." + std::string(name)};
  }
  JsonPath element(std::size_t index) const {
    return {file, path + "[" + std::to_string(index) + "]"};
  }
  [[noreturn]] void fail(const std::string& message) const;
};

// Returns what `call` returns. A ConfigError of `call`, which knows JSON paths only, gets the name
// of the file in front.
template <typename Call>
auto in_file(const std::string& file, Call&& call) {
  try {
    return call();
  } catch (const ConfigError& error) {
    throw ConfigError(file + ": " + error.what());
  }
}

// One row of help: "outer.momentum", "number", "0.9", "Nesterov momentum", "from 0 to 1".
struct FieldHelp {
  std::string path;
  std::string type;      // of the JSON value: "integer or null", "list of strings"
  std::string fallback;  // the default as JSON; "required" if there is none
  std::string doc;
  std::string limits;  // allowed values, empty if anything of the type goes
};

namespace detail {

// The fields that an unknown member may have meant.
struct NearFields {
  std::vector<std::string> known;
  std::vector<std::string> inside;  // fields of the known ones: "adamw.beta1"
  std::span<const FormerField> former = {};
};

// Throws ConfigError if `json` has a member that is not in `fields.known`. The message proposes
// what has come for a former field of that name, or the field of that name inside a known one. Else
// it proposes the known field with the most similar name.
void refuse_unknown_members(const Json& json, const NearFields& fields, const JsonPath& path);
void require_object(const Json& json, const JsonPath& path);
void read_scalar(const Json& json, bool& value, const Rules& rules, const JsonPath& path);
void read_scalar(const Json& json, int64_t& value, const Rules& rules, const JsonPath& path);
void read_scalar(const Json& json, double& value, const Rules& rules, const JsonPath& path);
void read_scalar(const Json& json, std::string& value, const Rules& rules, const JsonPath& path);
void read_scalar(const Json& json, Json& value, const Rules& rules, const JsonPath& path);
std::size_t read_enum(const Json& json, std::span<const std::string_view> names,
                      const JsonPath& path);

template <typename T>
void read_value(const Json& json, T& value, const Rules& rules, const JsonPath& path);

// Lists the names of the fields that it visits.
struct FieldNames {
  std::vector<std::string>& names;
  std::string prefix;
  template <typename T>
  void operator()(const char* name, T& /*value*/, const char* /*doc*/, const Rules& = {}) {
    names.push_back(prefix + name);
  }
};

// Reads the members of one JSON object into the fields that it visits.
class FieldReader {
 public:
  FieldReader(const Json& json, const JsonPath& path) : json_(json), path_(path) {
    require_object(json, path);
  }

  template <typename T>
  void operator()(const char* name, T& value, const char* /*doc*/, const Rules& rules = {}) {
    fields_.known.emplace_back(name);
    if constexpr (HasFields<T>) value.fields(FieldNames{fields_.inside, std::string(name) + "."});
    const auto found = json_.find(name);
    if (found != json_.end()) {
      read_value(*found, value, rules, path_.member(name));
    } else if (rules.required) {
      path_.member(name).fail("is missing");
    }
  }

  // Refuses members that no visited field has.
  void finish(std::span<const FormerField> former) {
    fields_.former = former;
    refuse_unknown_members(json_, fields_, path_);
  }

 private:
  const Json& json_;
  const JsonPath& path_;
  NearFields fields_;
};

template <typename T>
void read_value(const Json& json, T& value, const Rules& rules, const JsonPath& path) {
  if constexpr (HasFields<T>) {
    FieldReader reader(json, path);
    value.fields(reader);
    if constexpr (HasFormerFields<T>) {
      reader.finish(T::kFormerFields);
    } else {
      reader.finish({});
    }
  } else if constexpr (OptionalField<T>) {
    if (json.is_null()) {
      value.reset();
    } else {
      read_value(json, value.emplace(), rules, path);
    }
  } else if constexpr (VectorField<T>) {
    if (!json.is_array()) path.fail("must be an array");
    if (!rules.allow(static_cast<double>(json.size()))) {
      path.fail(fmt::format("has {} entries; must have {}", json.size(), rules.text()));
    }
    value.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      read_value(json[i], value.emplace_back(), Rules{}, path.element(i));
    }
  } else if constexpr (NamedEnum<T>) {
    value = static_cast<T>(read_enum(json, enum_names(T{}), path));
  } else {
    read_scalar(json, value, rules, path);
  }
}

template <typename T>
Json print_value(const T& value);

struct FieldPrinter {
  Json json = Json::object();
  template <typename T>
  void operator()(const char* name, T& value, const char* /*doc*/, const Rules& /*rules*/ = {}) {
    json[name] = print_value(value);
  }
};

template <typename T>
Json print_value(const T& value) {
  if constexpr (HasFields<T>) {
    FieldPrinter printer;
    T copy = value;  // fields() is not const, so that reading can share it
    copy.fields(printer);
    return std::move(printer.json);
  } else if constexpr (OptionalField<T>) {
    return value ? print_value(*value) : Json(nullptr);
  } else if constexpr (VectorField<T>) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(print_value(element));
    return array;
  } else if constexpr (NamedEnum<T>) {
    return std::string(name_of(value));
  } else {
    return value;
  }
}

template <typename T>
std::string type_text() {
  if constexpr (OptionalField<T>) {
    return type_text<typename T::value_type>() + " or null";
  } else if constexpr (VectorField<T>) {
    return "list of " + type_text<typename T::value_type>() + "s";
  } else if constexpr (NamedEnum<T> || std::is_same_v<T, std::string>) {
    return "string";
  } else if constexpr (HasFields<T>) {
    return "object";
  } else if constexpr (std::is_same_v<T, Json>) {
    return "value";
  } else {
    return std::is_same_v<T, bool> ? "boolean" : std::is_integral_v<T> ? "integer" : "number";
  }
}

class FieldLister {
 public:
  FieldLister(std::vector<FieldHelp>& rows, std::string prefix)
      : rows_(rows), prefix_(std::move(prefix)) {}
  template <typename T>
  void operator()(const char* name, T& value, const char* doc, const Rules& rules = {}) {
    list(prefix_ + name, value, doc, rules);
  }

 private:
  template <typename T>
  void list(const std::string& path, const T& value, const char* doc, const Rules& rules) {
    if constexpr (HasFields<T>) {
      T copy = value;
      copy.fields(FieldLister(rows_, path + "."));
    } else if constexpr (NamedEnum<T>) {
      std::string names;
      for (const auto option : enum_names(value)) {
        names += (names.empty() ? "" : " | ") + std::string(option);
      }
      add<T>(path, std::string(name_of(value)), doc, rules, names);
    } else {
      add<T>(path, print_value(value).dump(), doc, rules, rules.text());
      if constexpr (VectorField<T> || OptionalField<T>) {
        if constexpr (HasFields<typename T::value_type>) {
          typename T::value_type inner{};
          inner.fields(FieldLister(rows_, path + (VectorField<T> ? "[]." : ".")));
        }
      }
    }
  }

  template <typename T>
  void add(const std::string& path, const std::string& fallback, const char* doc,
           const Rules& rules, const std::string& limits) {
    rows_.push_back({path, type_text<T>(), rules.required ? "required" : fallback, doc, limits});
  }

  std::vector<FieldHelp>& rows_;
  std::string prefix_;
};

}  // namespace detail

// Reads a struct from `json`. Throws ConfigError with `file` and the JSON path for unknown members,
// missing required ones, wrong types and values out of range.
template <HasFields T>
T read_json(const Json& json, const std::string& file) {
  T value{};
  detail::read_value(json, value, Rules{}, JsonPath{file, ""});
  return value;
}

// Prints every field, defaults included, so that read_json(to_json(x)) == x.
template <HasFields T>
Json to_json(const T& value) {
  return detail::print_value(value);
}

// Lists all fields of T, nested ones included, in their order.
template <HasFields T>
std::vector<FieldHelp> list_fields() {
  std::vector<FieldHelp> rows;
  T value{};
  value.fields(detail::FieldLister(rows, ""));
  return rows;
}

// Returns the rows as aligned text: one field per line, each line indented by two spaces.
std::string help_text(const std::vector<FieldHelp>& rows);

}  // namespace farstep
