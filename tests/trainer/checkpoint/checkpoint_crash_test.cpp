// A process that dies in the middle of saving, at moments of the kernel's choice.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/base/file.h"
#include "trainer/checkpoint/train_state.h"

using namespace farstep;

namespace {

// In the child: rounds of checkpoints, pruned, one of them replaced each time; every save that is
// done is told through the pipe. Returns never.
[[noreturn]] void save_until_killed(const std::filesystem::path& root, int64_t round, int pipe) {
  while (true) {
    save_checkpoint(root, SmallState(round, 0).state);
    save_checkpoint(root, SmallState(round, round % 3).state);
    prune_checkpoints(root, 2);
    if (::write(pipe, &round, sizeof round) != sizeof round) ::_exit(1);
    ++round;
  }
}

// Lets a child save from `round` on and kills it after `delay_ms` of saving. Returns the last round
// that it finished, or round - 1.
int64_t crash_after(const std::filesystem::path& root, int64_t round, int delay_ms) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) save_until_killed(root, round, ends[1]);
  ::close(ends[1]);
  pollfd none{-1, 0, 0};
  ::poll(&none, 1, delay_ms);  // the moment of the crash, not a wait for anything
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  int64_t finished = round - 1;
  while (::read(ends[0], &finished, sizeof finished) == sizeof finished) {
  }
  ::close(ends[0]);
  return finished;
}

}  // namespace

TEST_CASE("killed at any moment a site resumes from the last save it finished or a newer one") {
  const TemporaryFolder root;
  std::mt19937 random(3);
  int64_t finished = 0;
  for (int crash = 0; crash < 40; ++crash) {
    finished = crash_after(root.path(), finished + 1, int(random() % 40));
    const auto resumable = resumable_checkpoints(root.path());
    if (finished == 0 && resumable.empty()) continue;
    REQUIRE_FALSE(resumable.empty());
    REQUIRE(resumable.size() == [&] {  // nothing was found damaged
      std::size_t rounds = 0;
      int64_t last = -1;
      for (const auto& entry : list_checkpoints(root.path())) {
        rounds += entry.round != last ? 1 : 0;
        last = entry.round;
      }
      return rounds;
    }());
    const auto& newest = resumable.front();
    REQUIRE(newest.round >= finished);
    SmallState loaded(newest.round, newest.step, SmallState::kZeros);
    load_checkpoint(newest, loaded.state);
    REQUIRE(loaded == SmallState(newest.round, newest.step));
  }
  REQUIRE(finished > 0);
}
