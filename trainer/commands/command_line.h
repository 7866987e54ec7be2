// Reads command-line options by the same field lists as config files. A field `train_vocabulary` is
// the option --train-vocabulary. A bool is a flag, and a vector takes many values.
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

enum class OptionShape { kFlag, kValue, kList };

struct Option {
  std::string field;
  std::string doc;
  OptionShape shape = OptionShape::kValue;
  bool is_text = false;  // the argument is used verbatim, not parsed as JSON
  bool positional = false;
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
    options_.push_back({name, text, shape_of<T>(), is_text<T>(), rules.positional});
  }

 private:
  template <typename T>
  static constexpr OptionShape shape_of() {
    if constexpr (std::is_same_v<T, bool>) return OptionShape::kFlag;
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
