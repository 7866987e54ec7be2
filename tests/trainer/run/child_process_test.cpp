#include "trainer/run/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"

using namespace farstep;

namespace {

int wait_for(ChildProcess& child) {
  pollfd ended{.fd = child.poll_descriptor(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&ended, 1, 10'000) == 1);
  const auto code = child.exit_code();
  REQUIRE(code.has_value());
  return *code;
}

}  // namespace

TEST_CASE("a child's exit code and both its outputs reach the parent") {
  const TemporaryFolder folder;
  ChildProcess child("/bin/sh", {"-c", "echo out; echo err >&2; exit 7"}, folder / "output.txt");
  REQUIRE(wait_for(child) == 7);
  REQUIRE(read_file(folder / "output.txt") == "out\nerr\n");
}

TEST_CASE("a child is put into the network namespace that it is given or does not start") {
  const TemporaryFolder folder;
  const int own = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  ChildProcess there("/usr/bin/readlink", {"/proc/self/ns/net"}, folder / "there.txt", own);
  const bool may = ::geteuid() == 0;
  CHECK(wait_for(there) == (may ? 0 : 127));
  CHECK(read_file(folder / "there.txt").starts_with(may ? "net:[" : "the network namespace"));
  ::close(own);
  const int no_namespace = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ChildProcess nowhere("/bin/true", {}, folder / "nowhere.txt", no_namespace);
  CHECK(wait_for(nowhere) == 127);
  CHECK(read_file(folder / "nowhere.txt") == "the network namespace cannot be entered\n");
  ::close(no_namespace);
}

TEST_CASE("a signal ends a child although its parent blocks that signal") {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  const TemporaryFolder folder;
  ChildProcess child("/bin/sleep", {"1000"}, folder / "output.txt");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE_FALSE(child.exit_code().has_value());
  child.send_signal(SIGINT);
  REQUIRE(wait_for(child) == 128 + SIGINT);
}

TEST_CASE("a program that does not exist ends with 127 and a file that cannot be is a DataError") {
  const TemporaryFolder folder;
  ChildProcess child(folder / "nothing", {}, folder / "output.txt");
  REQUIRE(wait_for(child) == 127);
  REQUIRE_THROWS_AS(ChildProcess("/bin/true", {}, folder / "no" / "output.txt"), DataError);
}
