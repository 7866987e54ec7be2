#include "trainer/watch/alarm_command.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/clock.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

const std::vector<Alarm> kTwo = {{AlarmKind::kSiteGone, "node2", "node2 is gone"},
                                 {AlarmKind::kLossRises, "", "the loss rises; $(date)"}};

// A program of the user's.
std::string script(const std::filesystem::path& path, const std::string& lines) {
  write_file(path, "#!/bin/sh\n" + lines);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

// Updates until `count` programs have ended; the test's time limit ends it otherwise.
void update_until(AlarmCommand& command, int64_t count) {
  const RealClock clock;
  const double deadline = clock.now_seconds() + 60;
  while (command.ended() < count) {
    REQUIRE(clock.now_seconds() < deadline);
    command.update("a run", kTwo);
  }
}

}  // namespace

TEST_CASE("each alarm runs the program once with what it is about") {
  const TemporaryFolder folder;
  const auto log = folder / "log";
  const RealClock clock;
  AlarmCommand command(script(folder / "notify", "printf '%s|' \"$@\" >>'" + log.string() +
                                                     "'\necho >>'" + log.string() + "'\n"),
                       clock);
  command.update("a run", {});
  command.update("a run", kTwo);
  update_until(command, 2);
  command.update("a run", kTwo);
  // No shell reads the text.
  const std::string both =
      "a run|site_gone|node2|node2 is gone|\na run|loss_rises||the loss rises; $(date)|\n";
  CHECK(read_file(log) == both);
  // An alarm that was over is a new one.
  command.update("a run", {});
  update_until(command, 4);
  CHECK(read_file(log) == both + both);
}

TEST_CASE("a program that is absent or fails or hangs harms nothing") {
  const TemporaryFolder folder;
  FakeClock clock;
  AlarmCommand absent((folder / "absent").string(), clock);
  absent.update("a run", kTwo);
  update_until(absent, 2);
  AlarmCommand failing(script(folder / "fails", "exit 3\n"), clock);
  failing.update("a run", kTwo);
  update_until(failing, 2);
  AlarmCommand hanging(script(folder / "hangs", "exec tail -f /dev/null\n"), clock);
  hanging.update("a run", kTwo);
  clock.advance(31);
  hanging.update("a run", kTwo);
  CHECK(hanging.ended() == 1);
  clock.advance(31);
  hanging.update("a run", kTwo);
  CHECK(hanging.ended() == 2);
}

}  // namespace farstep
