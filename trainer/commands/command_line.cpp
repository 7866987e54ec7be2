// A command's options are a struct with a list of fields, as a config is. CLI11 splits the command
// line and prints the help; the strict JSON reader does the rest, so both have the same checks and
// messages.
#include "trainer/commands/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace farstep::detail {

namespace {

std::string option_name(const Option& option) {
  std::string name = option.field;
  std::replace(name.begin(), name.end(), '_', '-');
  return option.positional ? name : "--" + name;
}

Json value_of(const Option& option, const std::string& text) {
  if (option.is_text) return text;
  const auto parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? Json(text) : parsed;  // the strict reader checks it
}

}  // namespace

std::optional<Json> parse_options(const std::string& command, const std::vector<Option>& options,
                                  const Arguments& arguments, const std::string& details) {
  const auto found =
      std::find_if(commands().begin(), commands().end(),
                   [&](const Command& candidate) { return candidate.name == command; });
  CLI::App app(found == commands().end() ? "" : std::string(found->summary), "farstep " + command);
  app.footer(details);
  const bool has_positional = std::any_of(options.begin(), options.end(),
                                          [](const Option& option) { return option.positional; });
  // CLI11 keeps references to these, so their sizes must not change.
  std::vector<std::string> values(options.size());
  std::vector<std::vector<std::string>> lists(options.size());
  std::vector<CLI::Option*> parsed;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto name = option_name(options[i]);
    if (options[i].shape == OptionShape::kFlag) {
      parsed.push_back(app.add_flag(name, options[i].doc));
    } else if (options[i].shape == OptionShape::kFlagOfNames) {
      parsed.push_back(app.add_flag(name, values[i], options[i].doc));
    } else if (options[i].shape == OptionShape::kValue) {
      parsed.push_back(app.add_option(name, values[i], options[i].doc)->type_name(""));
    } else {
      parsed.push_back(app.add_option(name, lists[i], options[i].doc)->type_name(""));
      // Otherwise "--set a=1 FOLDER" would read the folder as a second value.
      if (has_positional && !options[i].positional) parsed.back()->allow_extra_args(false);
    }
  }
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 reads from the end
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
    if (options[i].shape == OptionShape::kFlag) {
      json[options[i].field] = true;
    } else if (options[i].shape == OptionShape::kFlagOfNames) {
      // CLI11 has "true" for a flag that stands alone.
      json[options[i].field] = values[i] == "true" ? options[i].value_without_text : values[i];
    } else if (options[i].shape == OptionShape::kValue) {
      json[options[i].field] = value_of(options[i], values[i]);
    } else {
      for (const auto& text : lists[i]) {
        json[options[i].field].push_back(value_of(options[i], text));
      }
    }
  }
  return json;
}

}  // namespace farstep::detail
