// Reads command-line options by the same field lists as config files. A field `train_vocabulary` is
// the option --train-vocabulary. A bool is a flag, and a vector takes many values. An enum with an
// overload `value_without_text`, found by argument-dependent lookup, is a flag too: --resume stands
// for that value, and --resume=auto for the one named so.
//
// The strict JSON reader reads the values, so it alone checks types, ranges and names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/commands/command.h"
#include "trainer/config/json_fields.h"

namespace farstep {

namespace detail {

template <typename T>
concept FlagOfNames = NamedEnum<T> && requires(T value) {
  { value_without_text(value) } -> std::same_as<T>;
};

enum class OptionShape { kFlag, kFlagOfNames, kValue, kList };

struct Option {
  std::string field;
  std::string doc;
  OptionShape shape = OptionShape::kValue;
  bool is_text = false;  // the argument is used verbatim, not parsed as JSON
  bool positional = false;
  std::string value_without_text;  // of a flag of names
};

class OptionLister {
 public:
  explicit OptionLister(std::vector<Option>& options) : options_(options) {}
  template <typename T>
  void operator()(const char* name, T& value, const char* doc, const Rules& rules = {}) {
    std::string text = doc;
    if (!rules.text().empty()) text += " (" + rules.text() + ")";
    if constexpr (NamedEnum<T>) {
      text += " (";
      for (const auto option : enum_names(value)) text += std::string(option) + " ";
      text.back() = ')';
    }
    if (rules.required) {
      text += " [required]";
    } else if (const auto fallback = print_value(value);
               !fallback.is_null() && !fallback.empty() && fallback != "" && fallback != false) {
      text += " [" +
              (fallback.is_string() ? fallback.template get<std::string>() : fallback.dump()) + "]";
    }
    options_.push_back({name, text, shape_of<T>(), is_text<T>(), rules.positional, {}});
    if constexpr (FlagOfNames<T>) {
      options_.back().value_without_text = name_of(value_without_text(value));
    }
  }

 private:
  template <typename T>
  static constexpr OptionShape shape_of() {
    if constexpr (std::is_same_v<T, bool>) return OptionShape::kFlag;
    if constexpr (FlagOfNames<T>) return OptionShape::kFlagOfNames;
    return VectorField<T> ? OptionShape::kList : OptionShape::kValue;
  }
  template <typename T>
  static constexpr bool is_text() {
    if constexpr (OptionalField<T> || VectorField<T>) {
      return is_text<typename T::value_type>();
    } else {
      return std::is_same_v<T, std::string> || NamedEnum<T>;
    }
  }

  std::vector<Option>& options_;
};

// Returns the options' values as JSON. If help was requested, prints it with `details` at the end
// and returns nullopt.
std::optional<Json> parse_options(const std::string& command, const std::vector<Option>& options,
                                  const Arguments& arguments, const std::string& details);

}  // namespace detail

// Parses `arguments` of the command. If --help was requested, prints the help with `details` at the
// end and returns nullopt. Throws ConfigError.
template <HasFields Options>
std::optional<Options> parse_command_line(const std::string& command, const Arguments& arguments,
                                          const std::string& details = "") {
  std::vector<detail::Option> options;
  Options defaults{};
  defaults.fields(detail::OptionLister(options));
  const auto json = detail::parse_options(command, options, arguments, details);
  if (!json) return std::nullopt;
  return read_json<Options>(*json, "farstep " + command);
}

}  // namespace farstep
