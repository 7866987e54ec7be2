// Reads command-line options by the same field lists as config files. A field `train_vocabulary` is
// the option --train-vocabulary. A bool is a flag, and a vector takes many values. An enum with a
// specialisation of kValueWithoutText is a flag too: --resume stands for that value, and
// --resume=auto for the one named so.
//
// The strict JSON reader reads the values, so it alone checks types, ranges and names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/commands/command.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// What an option of this type means if it stands alone; none: it needs a text.
template <NamedEnum T>
inline constexpr std::optional<T> kValueWithoutText;

namespace detail {

template <typename T>
concept FlagOfNames = requires {
  requires kValueWithoutText<T>
  != std::nullopt;
};

struct Option {
  std::string field;
  OptionHelp help;
  std::string value_without_text = "";  // of a flag of names
};

// Returns the option's name on a command line.
std::string option_name(std::string field, bool positional);
// Returns what the help says of the option.
std::string option_text(const OptionHelp& help);

class OptionLister {
 public:
  explicit OptionLister(std::vector<Option>& options) : options_(options) {}
  template <typename T>
  void operator()(const char* name, T& value, const char* doc, const Rules& rules = {}) {
    OptionHelp help{.name = option_name(name, rules.positional),
                    .shape = shape_of<T>(),
                    .positional = rules.positional,
                    .required = rules.required,
                    .is_text = is_text<T>(),
                    .is_folder = rules.folder,
                    .doc = doc,
                    .limits = rules.text(),
                    .choices = {},
                    .fallback = ""};
    if constexpr (NamedEnum<T>) {
      for (const auto choice : enum_names(value)) help.choices.emplace_back(choice);
    }
    if (const auto fallback = print_value(value); !rules.required && !fallback.is_null() &&
                                                  !fallback.empty() && fallback != "" &&
                                                  fallback != false) {
      help.fallback = fallback.is_string() ? fallback.template get<std::string>() : fallback.dump();
    }
    options_.push_back({.field = name, .help = std::move(help)});
    if constexpr (FlagOfNames<T>) {
      options_.back().value_without_text = name_of(*kValueWithoutText<T>);
    }
  }

 private:
  template <typename T>
  static constexpr OptionShape shape_of() {
    if constexpr (std::is_same_v<T, bool>) return OptionShape::kFlag;
    if constexpr (FlagOfNames<T>) return OptionShape::kFlagOfNames;
    return VectorField<T> ? OptionShape::kList : OptionShape::kValue;
  }
  // Such an argument is used verbatim, not parsed as JSON.
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

// Returns the options' values as JSON. If help was requested, prints it with the sections at the
// end and returns nullopt.
std::optional<Json> parse_options(const std::string& command, const std::vector<Option>& options,
                                  const Arguments& arguments,
                                  const std::vector<HelpSection>& sections);

// Calls `read`. In a ConfigError of "farstep COMMAND: ROOTfield_name" it replaces the path by the
// option's name, as it was typed, unless the option is given without a name.
void name_options(const std::string& command, const std::string& root,
                  const std::vector<Option>& options, const std::function<void()>& read);

// Returns what the command says of itself.
CommandHelp help_of(const std::string& command, const std::vector<Option>& options,
                    const std::vector<HelpSection>& sections);

}  // namespace detail

// The fields of a config file, as a part of the help; its man page has them too.
template <HasFields Config>
HelpSection config_section(const std::string& title, const std::string& man_page) {
  return {title + ":\n" + help_text(list_fields<Config>()), man_page};
}

// Parses `arguments` of the command. If --help was requested, prints the help with `sections` at
// the end. Returns nullopt then, and if the command is to do nothing. Throws ConfigError.
template <HasFields Options>
std::optional<Options> parse_command_line(const std::string& command, const Arguments& arguments,
                                          const std::vector<HelpSection>& sections = {}) {
  std::vector<detail::Option> options;
  Options defaults{};
  defaults.fields(detail::OptionLister(options));
  if (arguments.help != nullptr) {
    *arguments.help = detail::help_of(command, options, sections);
    return std::nullopt;
  }
  const auto json = detail::parse_options(command, options, arguments, sections);
  if (!json) return std::nullopt;
  Options parsed;
  detail::name_options(command, "", options,
                       [&] { parsed = read_json<Options>(*json, "farstep " + command); });
  if (arguments.only_check) return std::nullopt;
  return parsed;
}

// Calls `use`, whose ConfigErrors may name JSON paths "farstep COMMAND: ROOTmember": the member's
// option is named instead, as it was typed. `root` is such as "plan.".
template <HasFields Options, typename Use>
auto in_options_of(const std::string& command, const std::string& root, const Use& use) {
  std::vector<detail::Option> options;
  Options defaults{};
  defaults.fields(detail::OptionLister(options));
  std::optional<decltype(use())> result;
  detail::name_options(command, root, options, [&] { result = use(); });
  return *std::move(result);
}

// The same with a text at the end of the help.
template <HasFields Options>
std::optional<Options> parse_command_line(const std::string& command, const Arguments& arguments,
                                          const std::string& text) {
  return parse_command_line<Options>(command, arguments, std::vector{HelpSection{text}});
}

}  // namespace farstep
