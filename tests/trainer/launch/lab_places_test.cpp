#include "trainer/launch/lab_places.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

using namespace farstep;
using Catch::Contains;

namespace {

std::string lab_of(const std::vector<int64_t>& pids) {
  wan::LabFile lab{.sites = {}, .control = "none"};
  for (const auto pid : pids) {
    lab.sites.push_back({.pid = pid,
                         .address = fmt::format("10.77.0.{}", lab.sites.size() + 1),
                         .interface = "wan0"});
  }
  return to_json(lab).dump();
}

// A process in a network namespace of its own, until it is told to end.
class Holder {
 public:
  Holder() {
    std::array<int, 2> ready, end;
    REQUIRE((::pipe(ready.data()) == 0 && ::pipe(end.data()) == 0));
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(end[1]);
      const char done = ::unshare(CLONE_NEWNET) == 0 ? 1 : 0;
      char byte = 0;
      ::_exit(::write(ready[1], &done, 1) == 1 && ::read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    end_ = end[1];
    ::close(end[0]);
    char done = 0;
    REQUIRE(::read(ready[0], &done, 1) == 1);
    for (const int used : ready) ::close(used);
    REQUIRE(done == 1);
  }
  ~Holder() {
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

}  // namespace

TEST_CASE("a lab that is not there or too small is refused with what to do") {
  const TemporaryFolder folder;
  const auto file = folder / "lab.json";
  CHECK_THROWS_WITH(LabPlaces(file, 1), Contains("start a lab with scripts/wan_lab"));
  write_file(file, "{}");
  CHECK_THROWS_WITH(LabPlaces(file, 1), Contains("lab.json: sites: is missing"));
  write_file(file, lab_of({1, 1}));
  CHECK_THROWS_WITH(LabPlaces(file, 3), Contains("the run has 3 sites, the lab 2"));
}

TEST_CASE("a lab is for root or refused") {
  const TemporaryFolder folder;
  const auto file = folder / "lab.json";
  if (::geteuid() != 0) {
    write_file(file, lab_of({1}));
    CHECK_THROWS_WITH(LabPlaces(file, 1), Contains("sudo"));
    return;
  }
  const Holder first, second;
  write_file(file, lab_of({first.pid(), second.pid()}));
  const LabPlaces places(file, 2);
  CHECK(places.address(0) == "10.77.0.1");
  CHECK(places.address(1) == "10.77.0.2");
  for (std::size_t site = 0; site < 2; ++site) {
    struct stat theirs {};
    struct stat opened {};
    const auto pid = site == 0 ? first.pid() : second.pid();
    REQUIRE(::stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &theirs) == 0);
    REQUIRE(::fstat(places.network_namespace(site), &opened) == 0);
    CHECK(theirs.st_ino == opened.st_ino);
  }
  // One that ended, and one in whose place another process is, in our own network.
  for (const int64_t gone : {int64_t{1} << 30, int64_t{::getpid()}}) {
    write_file(file, lab_of({first.pid(), gone}));
    CHECK_NOTHROW(LabPlaces(file, 1));
    CHECK_THROWS_WITH(LabPlaces(file, 2), Contains("start it anew"));
  }
}
