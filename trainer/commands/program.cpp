#include "trainer/commands/program.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "trainer/base/error.h"
#include "trainer/base/system/log.h"

namespace farstep {

namespace {

// Runs the command. Throws DataError if its output did not arrive, as on a full disk. A reader that
// has closed its pipe wants no more of it.
int run_to_the_end(const Arguments& arguments, const TorchCommand& torch_command) {
  std::error_code reason;
  int exit_code = 0;
  try {
    exit_code = run_command(arguments, torch_command);
    flush_output();
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    reason = error.code();
  }
  if (reason && reason != std::errc::broken_pipe) {
    throw DataError("cannot write to the standard output: " + reason.message());
  }
  return exit_code;
}

}  // namespace

// The stream remembers a fault of an earlier flush, whose text is lost, but not its reason.
void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  if (std::ferror(stdout) != 0) throw std::system_error(EIO, std::generic_category());
}

int run_program(int argc, char** argv, const TorchCommand& torch_command) {
  try {
    set_up_log("");
    return run_to_the_end({argv + 1, argv + argc}, torch_command);
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
    return error.exit_code();
    // Exit code 2, as for a config: what the user can change is there.
  } catch (const std::bad_alloc&) {
    spdlog::error(
        "out of memory: end other programs, or take a smaller model, micro_batch or batch");
    return static_cast<int>(ErrorKind::kConfig);
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
    return static_cast<int>(ErrorKind::kInternal);
  }
}

}  // namespace farstep
