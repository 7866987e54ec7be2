// A command's options are a struct with a list of fields, as a config is. CLI11 splits the command
// line and prints the help; the strict JSON reader does the rest, so both have the same checks and
// messages.
#include "trainer/commands/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

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
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::nullopt;
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
