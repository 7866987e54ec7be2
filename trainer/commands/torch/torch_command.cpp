#include "trainer/commands/torch/torch_command.h"

#include <algorithm>
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
  const auto* found = std::ranges::find(
      kTorchCommands, name, &std::pair<std::string_view, int (*)(const Arguments&)>::first);
  FARSTEP_CHECK(found != std::end(kTorchCommands), "no program has the command {}", name);
  return found->second(arguments);
}

}  // namespace farstep
