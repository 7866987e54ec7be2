// farstep: picks the subcommand, and turns what it throws into an exit code.
#include <spdlog/spdlog.h>

#include <new>

#include "trainer/base/error.h"
#include "trainer/base/system/log.h"
#include "trainer/commands/command.h"

int main(int argc, char** argv) {
  try {
    farstep::set_up_log("");
    return farstep::run_command({argv + 1, argv + argc});
  } catch (const farstep::Error& error) {
    spdlog::error("{}", error.what());
    return error.exit_code();
    // Exit code 2, as for a config: what the user can change is there.
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory: a smaller micro_batch or model needs less");
    return static_cast<int>(farstep::ErrorKind::kConfig);
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(farstep::ErrorKind::kInternal);
  }
}
