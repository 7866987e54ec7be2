// The table of subcommands. A new subcommand is a file with one function, and a line in
// command.cpp; one that needs LibTorch is in torch/, and has a line in torch/torch_command.cpp too.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/manual/command_help.h"

namespace farstep {

// The arguments after a command's name, and what is wanted of the command. One that takes its
// options by parse_command_line() does what is wanted.
struct Arguments : std::vector<std::string> {
  using std::vector<std::string>::vector;
  CommandHelp* help = nullptr;  // if given: it writes its help there, and does nothing else
  bool only_check = false;      // it reads the arguments, and does nothing else
};

struct Command {
  std::string_view name;
  std::string_view summary;
  // Runs the command with its arguments, and returns the exit code. Errors are thrown. Null if the
  // command needs LibTorch.
  int (*run)(const Arguments& arguments);
};

// Runs a command that needs LibTorch, by its name.
using TorchCommand = std::function<int(std::string_view name, const Arguments& arguments)>;

// Returns all subcommands, in the order of the help.
std::span<const Command> commands();

// Runs the subcommand named first in `arguments`, or --help or --version. After --check-arguments
// it only reads the subcommand's arguments. Returns the exit code. Throws ConfigError for an
// unknown name.
int run_command(const Arguments& arguments, const TorchCommand& torch_command);

int coordinator_command(const Arguments& arguments);
int init_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int keys_command(const Arguments& arguments);
int launch_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int simulate_command(const Arguments& arguments);
int tokenize_command(const Arguments& arguments);
int watch_command(const Arguments& arguments);

}  // namespace farstep
