// The script finds the option whose value is asked for, looks its kind up in a table, and offers
// what compgen finds. bash divides words at "=", so `--set a=b` comes as four of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "trainer/manual/completion.h"

namespace farstep {

namespace {

constexpr std::string_view kScript =
    R"bash(# Completion of farstep for bash. Written by `farstep manual`.

# Names, or with count=many also the words after the first.
_farstep_option() {
  count=one values=
  case "$1 $2" in
@options@    *) count=none ;;
  esac
}

_farstep_options() {
  case $1 in
@names@  esac
}

_farstep_settings() {
  case $1 in
@settings@  esac
}

_farstep_setting_values() {
  case $1 in
@setting_values@  esac
}

# Offers what begins with the word: files, folders, settings, or the given names.
_farstep_offer() {
  local IFS=$'\n'
  case $1 in
    :files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$2")) ;;
    :folders) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$2")) ;;
    :settings) compopt -o nospace 2>/dev/null
               COMPREPLY=($(compgen -S = -W "$(_farstep_settings "$3")" -- "$2")) ;;
    *) COMPREPLY=($(compgen -W "${1// /$'\n'}" -- "$2")) ;;
  esac
}

_farstep() {
  COMPREPLY=()
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} last=$((COMP_CWORD - 1))
  local count values name=
  if ((COMP_CWORD == 1)); then
    _farstep_offer '@commands@ --help --version' "$word"
    return
  fi
  # NAME= or NAME=VALUE: the name is one or two words back.
  if [[ $word == "=" ]]; then
    word= name=${COMP_WORDS[last]} last=$((last - 1))
  elif [[ ${COMP_WORDS[last]} == "=" ]]; then
    name=${COMP_WORDS[last - 1]} last=$((last - 2))
  fi
  if [[ $name == --* ]]; then
    _farstep_option "$command" "$name"
    _farstep_offer "$values" "$word" "$command"
    return
  fi
  if [[ -n $name ]]; then
    [[ ${COMP_WORDS[last]} == --set ]] && _farstep_offer "$(_farstep_setting_values "$name")" "$word"
    return
  fi
  if [[ $word == -* ]]; then
    _farstep_offer "$(_farstep_options "$command")" "$word"
    return
  fi
  # The option before the word, however many values of it lie between.
  local at=$last
  while ((at > 1)) && [[ ${COMP_WORDS[at]} != -* ]]; do at=$((at - 1)); done
  if ((at > 1)); then
    _farstep_option "$command" "${COMP_WORDS[at]}"
    if [[ $count == many || ($count == one && $at == "$last") ]]; then
      _farstep_offer "$values" "$word" "$command"
      return
    fi
  fi
  _farstep_option "$command" ''
  if [[ $count == none ]]; then
    _farstep_offer "$(_farstep_options "$command")" "$word"
  else
    _farstep_offer "$values" "$word" "$command"
  fi
}

complete -F _farstep farstep
)bash";

std::string filled(std::string_view form, const std::map<std::string, std::string>& parts) {
  std::string text(form);
  for (const auto& [name, part] : parts) {
    const auto mark = "@" + name + "@";
    text.replace(text.find(mark), mark.size(), part);
  }
  return text;
}

std::string values_of(const OptionHelp& option) {
  if (option.name == "--set") return ":settings";
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, " "));
  if (option.is_folder) return ":folders";
  return option.is_text ? ":files" : "";
}

// "one" value after the name, "many", or none; of --resume=auto the value belongs to the name.
std::string_view count_of(const OptionHelp& option, bool has_positional) {
  if (option.shape == OptionShape::kFlag || option.shape == OptionShape::kFlagOfNames) {
    return "none";
  }
  // Beside a positional argument an option takes one value each time.
  const bool many = option.shape == OptionShape::kList && (option.positional || !has_positional);
  return many ? "many" : "one";
}

std::string option_cases(const CommandHelp& command) {
  bool has_positional = false;
  for (const auto& option : command.options) has_positional |= option.positional;
  std::string text;
  for (const auto& option : command.options) {
    text += fmt::format("    '{} {}') count={} values='{}' ;;\n", command.name,
                        option.positional ? "" : option.name, count_of(option, has_positional),
                        values_of(option));
  }
  return text;
}

std::string names_case(const CommandHelp& command) {
  std::string names;
  for (const auto& option : command.options) {
    if (!option.positional) names += option.name + " ";
  }
  return fmt::format("    {}) echo '{}--help' ;;\n", command.name, names);
}

}  // namespace

std::string bash_completion(const ProgramHelp& program) {
  std::map<std::string, std::string> parts{
      {"commands", ""}, {"options", ""}, {"names", ""}, {"settings", ""}, {"setting_values", ""}};
  // Commands with equal settings share a line.
  std::map<std::string, std::string> commands_by_paths, values_by_path;
  for (const auto& command : program.commands) {
    parts["commands"] += (parts["commands"].empty() ? "" : " ") + command.name;
    parts["options"] += option_cases(command);
    parts["names"] += names_case(command);
    std::string paths;
    for (const auto& [path, values] : settings_to_complete(command)) {
      paths += (paths.empty() ? "" : "\n") + path;
      if (!values.empty()) values_by_path[path] = fmt::format("{}", fmt::join(values, " "));
    }
    if (paths.empty()) continue;
    auto& commands = commands_by_paths[paths];
    commands += (commands.empty() ? "" : "|") + command.name;
  }
  for (const auto& [paths, commands] : commands_by_paths) {
    parts["settings"] += fmt::format("    {}) echo '{}' ;;\n", commands, paths);
  }
  for (const auto& [path, values] : values_by_path) {
    parts["setting_values"] += fmt::format("    {}) echo '{}' ;;\n", path, values);
  }
  return filled(kScript, parts);
}

}  // namespace farstep
