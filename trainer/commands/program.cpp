#include "trainer/commands/program.h"

#include <spdlog/spdlog.h>

#include <new>

#include "trainer/base/error.h"
#include "trainer/base/system/log.h"

namespace farstep {

int run_program(int argc, char** argv, const TorchCommand& torch_command) {
  try {
    set_up_log("");
    return run_command({argv + 1, argv + argc}, torch_command);
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
    return error.exit_code();
    // Exit code 2, as for a config: what the user can change is there.
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory: a smaller micro_batch or model needs less");
    return static_cast<int>(ErrorKind::kConfig);
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(ErrorKind::kInternal);
  }
}

}  // namespace farstep
