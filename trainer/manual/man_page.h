// Man pages: of the program, of a command, and of a file's fields. Pure functions; thread-safe.
#pragma once

#include <string>

#include "trainer/manual/command_help.h"

namespace farstep {

// Returns text as a line of roff shows it. What stands between backquotes becomes bold.
std::string roff_text(const std::string& text);

// Returns the pages farstep(1), farstep-COMMAND(1), and one of section 5.
std::string program_page(const ProgramHelp& program);
std::string command_page(const CommandHelp& command, const ProgramHelp& program);
std::string file_page(const FileHelp& file, const ProgramHelp& program);

}  // namespace farstep
