#include "trainer/doctor/room.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"

namespace farstep {

namespace {

using Catch::Contains;

SiteConfig site_with(const std::vector<DeviceKind>& kinds) {
  SiteConfig site;
  for (const auto kind : kinds) site.devices.emplace_back().kind = kind;
  return site;
}

}  // namespace

TEST_CASE("threads that have no core of their own are warned of") {
  auto site = site_with({DeviceKind::kCpu, DeviceKind::kCuda, DeviceKind::kCpu});
  site.devices[0].threads = 3;
  CHECK(core_finding(site.devices, 4).grade == Grade::kOk);
  const auto found = core_finding(site.devices, 3);
  CHECK(found.grade == Grade::kWarning);
  CHECK_THAT(found.text, Contains("have 4 threads") && Contains("give the devices 3 threads"));
  CHECK(core_finding({}, 1).grade == Grade::kOk);
}

TEST_CASE("the disk has to hold the kept checkpoints and a newer one") {
  const auto finding = [&](int64_t free, int64_t kept) {
    return disk_finding(1'000'000'000, 2, {.free_bytes = free, .checkpoint_bytes = kept}, "out/a");
  };
  CHECK(finding(4'000'000'000, 0).grade == Grade::kOk);
  CHECK(finding(3'100'000'000, 0).grade == Grade::kWarning);
  CHECK(finding(2'999'999'999, 0).grade == Grade::kFault);
  CHECK(finding(2'999'999'999, 0).exit_code == 3);
  CHECK_THAT(finding(0, 0).text, Contains("out/a") && Contains("make room"));
  // A run that goes on replaces the checkpoints that it has.
  CHECK(finding(2'000'000'000, 2'000'000'000).grade == Grade::kOk);
}

TEST_CASE("the room of a folder counts its checkpoints, and is asked above one that is not there") {
  const TemporaryFolder folder;
  const auto site = folder / "out" / "a";
  const auto before = disk_room(site);
  CHECK(before.free_bytes > 0);
  CHECK(before.checkpoint_bytes == 0);
  std::filesystem::create_directories(site / "checkpoints" / "round-00001");
  write_file(site / "checkpoints" / "round-00001" / "model.safetensors", std::string(1000, 'x'));
  write_file(site / "events.jsonl", std::string(500, 'x'));
  CHECK(disk_room(site).checkpoint_bytes == 1000);
}

}  // namespace farstep
