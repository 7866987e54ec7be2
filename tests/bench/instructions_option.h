// The option by which a benchmark measures as on a lesser processor.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "trainer/base/processor/instruction_set.h"

namespace farstep {

// Adds --instructions SET to `app`: limits this process to that set, which the processor must have.
inline void add_instructions_option(CLI::App& app) {
  app.add_option_function<std::string>(
      "--instructions",
      [](const std::string& name) {
        const auto names = enum_names(InstructionSet{});
        const auto found = std::ranges::find(names, name);
        const auto set = static_cast<InstructionSet>(found - names.begin());
        if (found == names.end() || set > widest_instruction_set()) {
          throw CLI::ValidationError(
              "--instructions",
              fmt::format(
                  "{}: this processor has {}", name,
                  fmt::join(names.begin(),
                            names.begin() + static_cast<int>(widest_instruction_set()) + 1, ", ")));
        }
        limit_instruction_set(set);
      },
      "the widest instructions to use");
}

}  // namespace farstep
