// What the main functions of farstep and farstep-torch share.
#pragma once

#include "trainer/commands/command.h"

namespace farstep {

// Runs the command of a command line. Returns the exit code, also that of what the command throws,
// whose message goes to the log. Output that cannot be written is such an error.
int run_program(int argc, char** argv, const TorchCommand& torch_command);

}  // namespace farstep
