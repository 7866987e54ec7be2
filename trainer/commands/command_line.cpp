// A command's options are a struct with a list of fields, as a config is. CLI11 splits the command
// line and prints the help; the strict JSON reader does the rest, so both have the same checks and
// messages.
#include "trainer/commands/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "trainer/config/did_you_mean.h"
#include "trainer/config/strict_json.h"

namespace farstep::detail {

namespace {

std::string summary_of(const std::string& command) {
  const auto found = std::ranges::find(commands(), command, &Command::name);
  return found == commands().end() ? "" : std::string(found->summary);
}

std::string footer_of(const std::vector<HelpSection>& sections) {
  std::string text;
  for (const auto& section : sections) text += (text.empty() ? "" : "\n") + section.text;
  return text;
}

Json value_of(const Option& option, const std::string& text) {
  if (option.help.is_text) return text;
  try {
    // The strict reader checks it.
    return parse_if_json(text, option.help.name).value_or(Json(text));
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
}

// A value that needs no name may have its field's all the same: `train --config FILE`, as it was
// once the only way, is `train FILE`.
Arguments without_needless_names(const Arguments& arguments, const std::vector<Option>& options) {
  Arguments kept;
  for (const auto& argument : arguments) {
    const auto is_name = [&](const Option& option) {
      const auto name = "--" + option.help.name;
      return option.help.positional && (argument == name || argument.starts_with(name + "="));
    };
    if (std::ranges::none_of(options, is_name)) {
      kept.push_back(argument);
    } else if (const auto equals = argument.find('='); equals != std::string::npos) {
      kept.push_back(argument.substr(equals + 1));
    }
  }
  return kept;
}

[[noreturn]] void refuse_extra(const std::string& command, const std::string& extra,
                               const std::vector<Option>& options) {
  std::vector<std::string> names{"--help"};
  for (const auto& option : options) {
    if (!option.help.positional) names.push_back(option.help.name);
  }
  const auto hint =
      extra.starts_with("-") ? did_you_mean(extra.substr(0, extra.find('=')), names) : "";
  throw ConfigError(fmt::format("farstep {}: does not take {}{}{} --help lists the options",
                                command, extra, hint, hint.empty() ? ";" : ""));
}

}  // namespace

std::string option_name(std::string field, bool positional) {
  std::ranges::replace(field, '_', '-');
  return positional ? field : "--" + field;
}

std::string option_text(const OptionHelp& help) {
  auto text = help.doc;
  if (!help.limits.empty()) text += " (" + help.limits + ")";
  if (!help.choices.empty()) text += fmt::format(" ({})", fmt::join(help.choices, " "));
  if (help.required) text += " [required]";
  if (!help.fallback.empty()) text += " [" + help.fallback + "]";
  return text;
}

void name_options(const std::string& command, const std::string& root,
                  const std::vector<Option>& options, const std::function<void()>& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    const auto before = fmt::format("farstep {}: ", command);
    const auto path = before + root;
    for (const auto& option : options) {
      const auto end = path.size() + option.field.size();
      const bool is_named = !option.help.positional && text.starts_with(path + option.field) &&
                            text.find_first_of(":.[", end) == end;
      if (is_named) throw ConfigError(before + option.help.name + text.substr(end));
    }
    throw;
  }
}

CommandHelp help_of(const std::string& command, const std::vector<Option>& options,
                    const std::vector<HelpSection>& sections) {
  CommandHelp help{
      .name = command, .summary = summary_of(command), .options = {}, .sections = sections};
  for (const auto& option : options) help.options.push_back(option.help);
  return help;
}

std::optional<Json> parse_options(const std::string& command, const std::vector<Option>& options,
                                  const Arguments& arguments,
                                  const std::vector<HelpSection>& sections) {
  CLI::App app(summary_of(command), "farstep " + command);
  app.footer(footer_of(sections));
  const bool has_positional =
      std::ranges::any_of(options, [](const Option& option) { return option.help.positional; });
  // CLI11 keeps references to these, so their sizes must not change.
  std::vector<std::string> values(options.size());
  std::vector<std::vector<std::string>> lists(options.size());
  std::vector<CLI::Option*> parsed;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& help = options[i].help;
    const auto text = option_text(help);
    if (help.shape == OptionShape::kFlag) {
      parsed.push_back(app.add_flag(help.name, text));
    } else if (help.shape == OptionShape::kFlagOfNames) {
      parsed.push_back(app.add_flag(help.name, values[i], text));
    } else if (help.shape == OptionShape::kValue) {
      parsed.push_back(app.add_option(help.name, values[i], text)->type_name(""));
    } else {
      parsed.push_back(app.add_option(help.name, lists[i], text)->type_name(""));
      // Otherwise "--set a=1 FOLDER" would read the folder as a second value.
      if (has_positional && !help.positional) parsed.back()->allow_extra_args(false);
    }
  }
  try {
    // CLI11 reads from the end.
    const auto words = without_needless_names(arguments, options);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
  } catch (const CLI::ExtrasError&) {
    refuse_extra(command, app.remaining().front(), options);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(
        fmt::format("farstep {}: {}; --help lists the options", command, error.what()));
  }
  Json json = Json::object();
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (parsed[i]->count() == 0) continue;
    const auto& field = options[i].field;
    switch (options[i].help.shape) {
      case OptionShape::kFlag:
        json[field] = true;
        break;
      case OptionShape::kFlagOfNames:
        // CLI11 has "true" for a flag that stands alone.
        json[field] = values[i] == "true" ? options[i].value_without_text : values[i];
        break;
      case OptionShape::kValue:
        json[field] = value_of(options[i], values[i]);
        break;
      case OptionShape::kList:
        for (const auto& text : lists[i]) json[field].push_back(value_of(options[i], text));
        break;
    }
  }
  return json;
}

}  // namespace farstep::detail
