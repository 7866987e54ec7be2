// One _arguments call a command: zsh knows the kinds of values, and shows each option's meaning.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "trainer/manual/completion.h"

namespace farstep {

namespace {

// Inside single quotes, where `special` characters need a backslash too.
std::string zsh_quoted(const std::string& text, std::string_view special) {
  std::string shown;
  for (const char c : text) {
    if (special.find(c) != special.npos) shown += '\\';
    shown += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return shown;
}

std::string action_of(const OptionHelp& option) {
  if (option.name == "--set") return "_farstep_settings";
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  if (option.is_folder) return "_files -/";
  return option.is_text ? "_files" : " ";
}

// A line of _arguments: '--name=[meaning]:message:action'.
std::string spec_of(const OptionHelp& option) {
  const auto doc = zsh_quoted(option.doc, "[]\\");
  const auto message = zsh_quoted(option.positional ? option.name : option.name.substr(2), ":\\");
  const auto value = fmt::format("{}:{}", message, action_of(option));
  const bool is_list = option.shape == OptionShape::kList;
  if (option.positional) return fmt::format("'{}:{}'", is_list ? "*" : "1", value);
  switch (option.shape) {
    case OptionShape::kFlag:
      return fmt::format("'{}[{}]'", option.name, doc);
    case OptionShape::kFlagOfNames:
      return fmt::format("'{}=-[{}]::{}'", option.name, doc, value);
    default:
      return fmt::format("'{}{}=[{}]:{}'", is_list ? "*" : "", option.name, doc, value);
  }
}

std::string command_case(const CommandHelp& command) {
  auto text = fmt::format("    {}) _arguments", command.name);
  for (const auto& option : command.options) text += " \\\n      " + spec_of(option);
  return text + " \\\n      '(- *)'{-h,--help}'[print the options]' ;;\n";
}

}  // namespace

std::string zsh_completion(const ProgramHelp& program) {
  std::string commands, cases;
  std::map<std::string, std::string> commands_by_paths, values_by_path;
  for (const auto& command : program.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, zsh_quoted(command.summary, ":\\"));
    cases += command_case(command);
    std::string paths;
    for (const auto& [path, values] : settings_to_complete(command)) {
      paths += (paths.empty() ? "" : " ") + path;
      if (!values.empty()) values_by_path[path] = fmt::format("{}", fmt::join(values, " "));
    }
    if (paths.empty()) continue;
    auto& names = commands_by_paths[paths];
    names += (names.empty() ? "" : "|") + command.name;
  }
  std::string settings, values;
  for (const auto& [paths, names] : commands_by_paths) {
    settings += fmt::format("      {}) paths=({}) ;;\n", names, paths);
  }
  for (const auto& [path, names] : values_by_path) {
    values += fmt::format("      {}) values=({}) ;;\n", path, names);
  }
  return fmt::format(R"zsh(#compdef farstep
# Completion of farstep for zsh. Written by `farstep manual`.

# PATH=VALUE: first the paths, then what the path can be.
_farstep_settings() {{
  local -a paths values
  if [[ $PREFIX == *=* ]]; then
    local name=${{PREFIX%%=*}}
    compset -P 1 '*='
    case $name in
{}    esac
    compadd -a values
  else
    case $farstep_command in
{}    esac
    compadd -S = -a paths
  fi
}}

_farstep() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe -t commands 'farstep command' commands
    _arguments '(- *)'{{-h,--help}}'[list the commands]' '(- *)--version[print the version]'
    return
  fi
  local farstep_command=$words[2]
  shift words
  ((CURRENT--))
  case $farstep_command in
{}  esac
}}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _farstep "$@"
else
  compdef _farstep farstep
fi
)zsh",
                     values, settings, commands, cases);
}

}  // namespace farstep
