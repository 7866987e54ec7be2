#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/manual/completion.h"

namespace farstep {

namespace {

std::string fish_quoted(const std::string& text) {
  std::string shown = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') shown += '\\';
    shown += c;
  }
  return shown + "'";
}

std::string value_of(const OptionHelp& option) {
  if (option.shape == OptionShape::kFlag) return "";
  if (!option.choices.empty()) {
    const auto names = fish_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
    return (option.shape == OptionShape::kFlagOfNames ? " -a " : " -x -a ") + names;
  }
  if (option.is_folder) return " -x -a '(__fish_complete_directories)'";
  return option.is_text ? " -r -F" : " -x";
}

std::string line_of(const CommandHelp& command, const OptionHelp& option) {
  const auto start =
      fmt::format("complete -c farstep -n '__fish_seen_subcommand_from {}'", command.name);
  if (option.positional) {
    return start + (option.is_folder ? " -a '(__fish_complete_directories)'" : " -F") + "\n";
  }
  return fmt::format("{} -l {} -d {}{}\n", start, option.name.substr(2), fish_quoted(option.doc),
                     value_of(option));
}

}  // namespace

std::string fish_completion(const ProgramHelp& program) {
  std::string text =
      "# Completion of farstep for fish. Written by `farstep manual`.\n"
      "complete -c farstep -f\n";
  for (const auto& command : program.commands) {
    text += fmt::format("complete -c farstep -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(command.summary));
    for (const auto& option : command.options) text += line_of(command, option);
  }
  return text;
}

}  // namespace farstep
