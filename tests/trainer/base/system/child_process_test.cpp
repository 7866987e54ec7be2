#include "trainer/base/system/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

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
  ChildProcess child("/bin/sh", {"-c", "echo out; echo err >&2; exit 7"},
                     {.output_file = folder / "output.txt"});
  REQUIRE(wait_for(child) == 7);
  REQUIRE(read_file(folder / "output.txt") == "out\nerr\n");
}

TEST_CASE("a child is put into the network namespace that it is given or does not start") {
  const TemporaryFolder folder;
  const int own = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  ChildProcess there("/usr/bin/readlink", {"/proc/self/ns/net"},
                     {.output_file = folder / "there.txt", .network_namespace = own});
  const bool may = ::geteuid() == 0;
  CHECK(wait_for(there) == (may ? 0 : 127));
  CHECK(read_file(folder / "there.txt").starts_with(may ? "net:[" : "the network namespace"));
  ::close(own);
  const int no_namespace = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ChildProcess nowhere("/bin/true", {},
                       {.output_file = folder / "nowhere.txt", .network_namespace = no_namespace});
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
  ChildProcess child("/bin/sleep", {"1000"}, {.output_file = folder / "output.txt"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE_FALSE(child.exit_code().has_value());
  child.send_signal(SIGINT);
  REQUIRE(wait_for(child) == 128 + SIGINT);
}

TEST_CASE("a program that does not exist ends with 127 and a file that cannot be is a DataError") {
  const TemporaryFolder folder;
  ChildProcess child(folder / "nothing", {}, {.output_file = folder / "output.txt"});
  REQUIRE(wait_for(child) == 127);
  CHECK_THAT(read_file(folder / "output.txt"),
             Catch::EndsWith("nothing: there is no such program\n"));
  REQUIRE_THROWS_AS(ChildProcess("/bin/true", {}, {.output_file = folder / "no" / "output.txt"}),
                    DataError);
}

TEST_CASE("a name without a slash is looked up and writes where its parent does") {
  ChildProcess child("sh", {"-c", "exit 3"});
  CHECK(wait_for(child) == 3);
}

TEST_CASE("a child has its parent's process group if it is not given one of its own") {
  const TemporaryFolder folder;
  for (const bool has_own_group : {true, false}) {
    // Field 5 of its stat line is the group.
    ChildProcess child("cut", {"-d ", "-f5", "/proc/self/stat"},
                       {.output_file = folder / "group.txt", .has_own_group = has_own_group});
    REQUIRE(wait_for(child) == 0);
    const bool is_same = std::stoi(read_file(folder / "group.txt")) == ::getpgrp();
    CHECK(is_same == !has_own_group);
  }
}
