#include "trainer/doctor/gpus.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

using Catch::Contains;

const GpuDriver kGoodDriver{.version = "580.95.05",
                            .gpus = {{"Large", 80'000'000'000}, {"Small", 8'000'000'000}}};

SiteConfig site_on_gpus(std::vector<int64_t> indices) {
  SiteConfig site;
  for (const auto index : indices) {
    auto& device = site.devices.emplace_back();
    device.kind = DeviceKind::kCuda;
    device.index = index;
  }
  return site;
}

}  // namespace

TEST_CASE("the driver's version is found in what the kernel module says of itself") {
  CHECK(driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n"
                          "GCC version:  gcc version 12.2.0\n") == "550.54.14");
  CHECK(driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  "
                          "Release Build\n") == "580.95.05");
  CHECK(driver_version_in("").empty());
  CHECK(driver_version_in("none\nGCC version: 12.2.0\n").empty());
}

TEST_CASE("a site without GPUs needs no driver") {
  SiteConfig site;
  site.devices.emplace_back();
  const auto none = gpu_finding({}, site, false, std::nullopt);
  CHECK(none.grade == Grade::kOk);
  CHECK_THAT(none.text, Contains("built without CUDA"));
  CHECK_THAT(gpu_finding(kGoodDriver, site, true, std::nullopt).text,
             Contains("Large with 80.0 GB") && Contains("uses no GPU"));
}

TEST_CASE("driver, build and memory have to fit a site's GPUs") {
  const auto of = [](int64_t bytes) {
    return heterogeneity::MemoryUse{.weights_bytes = bytes / 3, .activations_bytes = bytes * 2 / 3};
  };
  const MemoryNeeds needs{.host = {}, .gpus = {of(9'000'000'000), of(4'500'000'000)}};
  CHECK(gpu_finding(kGoodDriver, site_on_gpus({0, 1}), true, needs).grade == Grade::kOk);
  const auto missing = gpu_finding({}, site_on_gpus({0}), true, needs);
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.text, Contains("install driver 580"));
  auto old = kGoodDriver;
  old.version = "535.183.01";
  CHECK_THAT(gpu_finding(old, site_on_gpus({0}), true, needs).text,
             Contains("535.183.01") && Contains("install driver 580"));
  const auto small = gpu_finding(kGoodDriver, site_on_gpus({1, 0}), true, needs);
  CHECK(small.grade == Grade::kFault);
  CHECK_THAT(
      small.text,
      Contains("devices[0]") &&
          Contains("has 8.00 GB, and the run takes 9.00 GB: weights 3.00 GB, activations 6.00 GB"));
  CHECK(gpu_finding(kGoodDriver, site_on_gpus({1, 0}), true, std::nullopt).grade == Grade::kOk);
  CHECK(gpu_finding(kGoodDriver, site_on_gpus({0}), false, needs).grade == Grade::kWarning);
}

TEST_CASE("asking this machine's driver does not fail, with or without one") {
  const auto driver = read_gpu_driver();
  if (driver.version.empty()) CHECK(driver.gpus.empty());
}

}  // namespace farstep
