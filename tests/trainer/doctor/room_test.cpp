#include "trainer/doctor/room.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"

namespace farstep {

namespace {

using Catch::Contains;

constexpr int64_t kParameters = 1'000'000;
constexpr int64_t kModel = 4 * kParameters;
constexpr int64_t kChunks = int64_t{64} << 20;

SiteConfig site_with(const std::vector<DeviceKind>& kinds) {
  SiteConfig site;
  for (const auto kind : kinds) site.devices.emplace_back().kind = kind;
  return site;
}

RunConfig run_of_two() {
  RunConfig run;
  for (const auto* const name : {"a", "b"}) run.sites.emplace_back().name = name;
  return run;
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

// The terms are those of the table in ARCHITECTURE.md, added by hand.
TEST_CASE("the needs of a run are the sum of the table's terms") {
  const auto cpu = site_with({DeviceKind::kCpu});
  const auto needs = run_needs(kParameters, run_of_two(), cpu);
  // theta_global, momentum 2; the fragment 1; AdamW's copy 2; weights, gradients, moments 4.
  CHECK(needs.host_bytes == kChunks + 9 * kModel);
  CHECK(needs.checkpoint_bytes == 4 * kModel);

  auto run = run_of_two();
  run.sync.fragments = 4;
  run.sync.delay_steps = 5;
  run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  const auto streamed = run_needs(kParameters, run, cpu);
  // 2; 1/4; copies 3; under way 2/4; residuals 1 + 1/2, and those of the sync under way a quarter
  // of that; 4.
  CHECK(streamed.host_bytes ==
        kChunks + 9 * kModel + 3 * kModel / 4 + 3 * kModel / 2 + 3 * kModel / 8);
  CHECK(streamed.checkpoint_bytes == 5 * kModel + 3 * kModel / 2);

  run = run_of_two();
  run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  CHECK(run_needs(kParameters, run, cpu).host_bytes == kChunks + (2 + 1 + 3 + 3 + 4) * kModel);
}

TEST_CASE("a GPU's part is not the machine's") {
  const auto gpus = site_with({DeviceKind::kCuda, DeviceKind::kCuda});
  const auto needs = run_needs(kParameters, run_of_two(), gpus);
  CHECK(needs.host_bytes == kChunks + 5 * kModel);
  CHECK(needs.first_gpu_bytes == 4 * kModel);
  CHECK(needs.other_gpu_bytes == 2 * kModel);
  // One that serves alone updates its copy on the CPU.
  CHECK(run_needs(kParameters, run_of_two(), site_with({})).host_bytes == kChunks + 9 * kModel);
  const auto two = site_with({DeviceKind::kCpu, DeviceKind::kCpu});
  CHECK(run_needs(kParameters, run_of_two(), two).host_bytes == kChunks + 11 * kModel);
}

TEST_CASE("memory is compared with what is free") {
  const RunNeeds needs{.host_bytes = 8'000'000'000};
  CHECK(memory_finding(needs, 20'000'000'000).grade == Grade::kOk);
  CHECK(memory_finding(needs, std::nullopt).grade == Grade::kLater);
  const auto tight = memory_finding(needs, 9'000'000'000);
  CHECK(tight.grade == Grade::kWarning);
  CHECK_THAT(tight.text, Contains("8.0 GB") && Contains("9.0 GB") && Contains("micro_batch"));
  const auto small = memory_finding(needs, 7'999'999'999);
  CHECK(small.grade == Grade::kFault);
  CHECK(small.exit_code == 2);
  CHECK_THAT(small.text, Contains("a smaller model"));
}

TEST_CASE("the disk has to hold the kept checkpoints and a newer one") {
  const RunNeeds needs{.checkpoint_bytes = 1'000'000'000};
  const auto finding = [&](int64_t free, int64_t kept) {
    return disk_finding(needs, 2, {.free_bytes = free, .checkpoint_bytes = kept}, "out/a");
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
