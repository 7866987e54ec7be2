// The way from farstep to farstep-torch.
//
// LibTorch takes 0.2 s of processor time to start, and 430 MB on disk. Most commands do not need
// it, so they are in a program of their own. It starts in 10 ms, and on machines without LibTorch
// too: a coordinator's, or where plans are made and reports are read.
#pragma once

#include <string_view>

#include "trainer/commands/command.h"

namespace farstep {

// Goes on as the program farstep-torch with that command: the process and its number stay. The
// program is in the folder of this one. Never returns. Throws ConfigError if the program is not
// there or cannot be started.
[[noreturn]] int become_torch_program(std::string_view name, const Arguments& arguments);

}  // namespace farstep
