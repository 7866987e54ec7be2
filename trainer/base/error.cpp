// The table of exit codes: `farstep --help`, docs/reference and the tests read it.
#include "trainer/base/error.h"

namespace farstep {

namespace {

// What a restart mends has code 4 and no other, so that a supervisor can restart on it alone.
constexpr ExitCode kExitCodes[] = {
    {0, "done, or the run was finished already", ""},
    {1, "a bug", "report it with the log; --resume continues"},
    {2, "wrong config or arguments", "correct what the message names; a restart does not help"},
    {3, "bad data or checkpoint, or a full disk", "replace the file that the message names"},
    {4,
     "the coordinator or a site is missing, lost or still busy; a port is in use, or an address is "
     "not there yet",
     "start again, with --resume=auto"},
    {5, "training diverged: a number is not finite",
     "a lower learning rate or a longer warm-up; a restart alone does not help"},
    {kExitInterrupted, "interrupted, after a checkpoint", "--resume continues"},
};

}  // namespace

std::span<const ExitCode> exit_codes() {
  return kExitCodes;
}

}  // namespace farstep

namespace farstep::detail {

void throw_check_failed(const char* file, int line, const char* condition,
                        const std::string& message) {
  throw InternalError(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace farstep::detail
