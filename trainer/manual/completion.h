// Completion of the program's commands, options and values, as scripts for shells: bash (4 and
// later, without the package bash-completion), zsh, and fish. Pure functions; thread-safe.
//
// A text may be a file's name, so shells complete it as one; of a folder they offer folders alone.
#pragma once

#include <string>

#include "trainer/manual/command_help.h"

namespace farstep {

std::string bash_completion(const ProgramHelp& program);
std::string zsh_completion(const ProgramHelp& program);
std::string fish_completion(const ProgramHelp& program);

// A setting of --set PATH=VALUE with the values that it can have: those of an enum or a boolean.
struct SettingValues {
  std::string path;
  std::vector<std::string> values;  // empty if there is no list of them
};

// Returns what --set reaches, but for entries of lists, whose paths hold a number.
std::vector<SettingValues> settings_to_complete(const CommandHelp& command);

}  // namespace farstep
