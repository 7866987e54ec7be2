// The commands that need LibTorch.
#pragma once

#include <string_view>

#include "trainer/commands/command.h"

namespace farstep {

// Runs the command of that name, and returns its exit code. Errors are thrown.
int run_torch_command(std::string_view name, const Arguments& arguments);

// Returns the help of all commands, and of every file that has a man page.
ProgramHelp program_help();

int check_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int evaluate_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int generate_command(const Arguments& arguments);
int import_command(const Arguments& arguments);
int manual_command(const Arguments& arguments);
int profile_command(const Arguments& arguments);
int train_command(const Arguments& arguments);

}  // namespace farstep
