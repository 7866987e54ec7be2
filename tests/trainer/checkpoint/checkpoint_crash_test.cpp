// A process that dies in the middle of saving, at moments of the kernel's choice.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/checkpoint/train_state.h"

using namespace farstep;

namespace {

// In the child: checkpoints of round after round, pruned, every third replaced; each round that is
// done is told through the pipe.
[[noreturn]] void save_until_killed(const std::filesystem::path& root, int64_t round, int pipe) {
  while (true) {
    save_checkpoint(root, SmallState(round, 0).state);
    save_checkpoint(root, SmallState(round, round % 3).state);
    prune_checkpoints(root, 2);
    if (::write(pipe, &round, sizeof round) != sizeof round) ::_exit(1);
    ++round;
  }
}

// Lets a child save from `round` on and kills it `delay_ms` after its first save is done. Returns
// the last round that it finished.
int64_t crash_after(const std::filesystem::path& root, int64_t round, int delay_ms) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) save_until_killed(root, round, ends[1]);
  ::close(ends[1]);
  pollfd first_save{ends[0], POLLIN, 0};
  const int told = ::poll(&first_save, 1, 30'000);
  ::poll(nullptr, 0, delay_ms);  // the moment of the crash, not a wait for anything
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(told == 1);
  REQUIRE(WIFSIGNALED(status));
  int64_t finished = 0;
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
  for (int crash = 0; crash < 25; ++crash) {
    finished = crash_after(root.path(), finished + 1, int(random() % 120));
    const auto resumable = resumable_checkpoints(root.path());
    REQUIRE_FALSE(resumable.empty());
    REQUIRE(resumable.size() == list_checkpoints(root.path()).size());  // nothing was found damaged
    const auto& newest = resumable.front();
    REQUIRE(newest.round >= finished);
    SmallState loaded(newest.round, newest.step, SmallState::kZeros);
    load_checkpoint(newest, loaded.state);
    REQUIRE(loaded == SmallState(newest.round, newest.step));
  }
}
