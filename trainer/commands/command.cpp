// The table of subcommands is also the list in the help, so neither can lack one.
#include "trainer/commands/command.h"

#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/config/did_you_mean.h"

namespace farstep {

namespace {

constexpr Command kCommands[] = {
    {"init", "writes the run file, the sites' configs and their keys", init_command},
    {"train", "one site's process: trains until the run's last round", nullptr},
    {"check", "what a site can find wrong with itself before it joins a run", nullptr},
    {"doctor",
     "examines a site before a run: all of check, machine, clock, and the way to the others",
     nullptr},
    {"launch", "starts every site of a folder on this machine, a bar a site", launch_command},
    {"coordinator", "the coordinator alone, outside any site", coordinator_command},
    {"keys", "the authority, keys and revocation list of a run", keys_command},
    {"tokenize", "turns text into token shards", tokenize_command},
    {"inspect", "what a dataset folder holds: counts, checksum, and some of its text",
     inspect_command},
    {"profile", "measures a site for the planner: TFLOPS, memory, step times, links", nullptr},
    {"plan", "what each site would do in a round, by its profile, and why", plan_command},
    {"simulate", "simulates rounds of given sites and links", simulate_command},
    {"report", "idle time by cause, losses and bytes of a run", report_command},
    {"watch", "the live page of a run: sites, loss, links, alarms, and figures for Prometheus",
     watch_command},
    {"evaluate", "validation loss of a checkpoint, and of an image classifier its accuracy",
     nullptr},
    {"generate", "text from a checkpoint", nullptr},
    {"import", "checks a Hugging Face folder, and copies it for a run to start from", nullptr},
    {"export", "a checkpoint as a Hugging Face folder", nullptr},
    {"manual", "writes the man pages, and completion for bash, zsh and fish", nullptr},
};

void print_help() {
  fmt::print("farstep {}: trains one model on GPUs in several places\n\nCommands:\n",
             FARSTEP_VERSION);
  for (const auto& command : kCommands) {
    fmt::print("  {:<12} {}\n", command.name, command.summary);
  }
  fmt::print("\nExit codes:\n");
  for (const auto& row : exit_codes()) {
    fmt::print("  {:<4} {}{}{}\n", row.code, row.meaning, row.remedy.empty() ? "" : ": ",
               row.remedy);
  }
  fmt::print(
      "\n`farstep COMMAND --help` lists every option and every config field.\n"
      "`farstep --check-arguments COMMAND ...` reads the command's arguments, and does nothing.\n");
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

int run_command(const Arguments& arguments, const TorchCommand& torch_command) {
  // Without a command the help is an answer to a mistake, so the exit code says so.
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    print_help();
    return arguments.empty() ? 2 : 0;
  }
  if (arguments[0] == "--version") {
    fmt::print("farstep {}\nCUDA kernels: {}\n", FARSTEP_VERSION, FARSTEP_CUDA_TEXT);
    return 0;
  }
  const bool only_check = arguments[0] == "--check-arguments";
  if (only_check && arguments.size() == 1)
    throw ConfigError("--check-arguments: of which command?");
  const auto first = arguments.begin() + (only_check ? 1 : 0);
  for (const auto& command : kCommands) {
    if (command.name == *first) {
      Arguments own(first + 1, arguments.end());
      own.only_check = only_check;
      return command.run == nullptr ? torch_command(command.name, own) : command.run(own);
    }
  }
  std::vector<std::string> names{"--help", "--version"};
  for (const auto& command : kCommands) names.emplace_back(command.name);
  const auto hint = did_you_mean(*first, names);
  throw ConfigError(fmt::format("'{}' is not a command{}{} `farstep --help` lists them", *first,
                                hint, hint.empty() ? ";" : ""));
}

}  // namespace farstep
