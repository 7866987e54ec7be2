#include "trainer/commands/torch/torch_command.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr std::pair<std::string_view, int (*)(const Arguments&)> kTorchCommands[] = {
    {"check", check_command},   {"doctor", doctor_command},     {"evaluate", evaluate_command},
    {"export", export_command}, {"generate", generate_command}, {"import", import_command},
    {"manual", manual_command}, {"profile", profile_command},   {"train", train_command},
};

}  // namespace

int run_torch_command(std::string_view name, const Arguments& arguments) {
  for (const auto& [command, run] : kTorchCommands) {
    if (command == name) return run(arguments);
  }
  throw InternalError(fmt::format("no program has the command {}", name));
}

}  // namespace farstep
