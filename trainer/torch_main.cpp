// farstep-torch: all commands. farstep starts it for those that need LibTorch.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

#include "trainer/commands/program.h"
#include "trainer/commands/torch/torch_command.h"

int main(int argc, char** argv) {
  const int exit_code = farstep::run_program(argc, argv, farstep::run_torch_command);
  // Without the destructors of static objects: LibTorch's take 0.1 s to unregister its operators
  // one by one, and the system takes back what they free anyway.
  spdlog::shutdown();
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
