// What the main functions of farstep and farstep-torch share, and the end of what a command prints.
#pragma once

#include "trainer/commands/command.h"

namespace farstep {

// Runs the command of a command line. Returns the exit code, also that of what the command throws,
// whose message goes to the log. Output that cannot be written is such an error.
int run_program(int argc, char** argv, const TorchCommand& torch_command);

// Sends to the standard output what was printed, for a reader that is to see it now. Throws
// std::system_error if it cannot be written, which run_program() reports.
void flush_output();

}  // namespace farstep
