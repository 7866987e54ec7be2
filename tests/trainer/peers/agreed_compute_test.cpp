#include "trainer/peers/agreed_compute.h"

#include <future>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/memory_store.h"

namespace farstep {

namespace {

SiteConfig site_with(const std::string& name, const std::vector<DeviceKind>& kinds) {
  SiteConfig site;
  site.name = name;
  site.devices.resize(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) site.devices[i].kind = kinds[i];
  return site;
}

constexpr auto kCpu = DeviceKind::kCpu, kGpu = DeviceKind::kCuda;

// What each of the sites, threads of this process, takes.
std::vector<ComputeType> agree(ComputeType asked, const std::vector<SiteConfig>& sites) {
  MemoryStore store(10);
  View view{.generation = 7, .members = {}, .self = 0};
  for (const auto& site : sites) view.members.push_back(site.name);
  std::vector<std::future<ComputeType>> running;
  for (const auto& site : sites) {
    running.push_back(
        std::async(std::launch::async, [&] { return agreed_compute(asked, site, view, store); }));
  }
  std::vector<ComputeType> found;
  for (auto& one : running) found.push_back(one.get());
  return found;
}

}  // namespace

TEST_CASE("a site alone takes bf16 where one of its devices is a GPU") {
  CHECK(own_compute(ComputeType::kAuto, site_with("a", {kCpu, kCpu})) == ComputeType::kFP32);
  CHECK(own_compute(ComputeType::kAuto, site_with("a", {kGpu})) == ComputeType::kBF16);
  CHECK(own_compute(ComputeType::kAuto, site_with("a", {kCpu, kGpu})) == ComputeType::kBF16);
  for (const auto asked : {ComputeType::kFP32, ComputeType::kBF16, ComputeType::kFP8}) {
    CHECK(own_compute(asked, site_with("a", {kCpu})) == asked);
    CHECK(own_compute(asked, site_with("a", {kGpu})) == asked);
  }
}

TEST_CASE("all sites take bf16 where one of them has a GPU and fp32 where none has") {
  using Types = std::vector<ComputeType>;
  const auto a = site_with("a", {kCpu}), b = site_with("b", {kCpu}), c = site_with("c", {kCpu});
  const auto gpu = site_with("g", {kCpu, kGpu});
  CHECK((agree(ComputeType::kAuto, {a}) == Types(1, ComputeType::kFP32)));
  CHECK((agree(ComputeType::kAuto, {a, b, c}) == Types(3, ComputeType::kFP32)));
  CHECK((agree(ComputeType::kAuto, {a, b, gpu}) == Types(3, ComputeType::kBF16)));
  CHECK((agree(ComputeType::kAuto, {gpu, a}) == Types(2, ComputeType::kBF16)));
}

TEST_CASE("sites that were told what to take ask nobody") {
  MemoryStore store(0);
  const View view{.generation = 1, .members = {"a", "missing"}, .self = 0};
  for (const auto asked : {ComputeType::kFP32, ComputeType::kBF16, ComputeType::kFP8}) {
    CHECK(agreed_compute(asked, site_with("a", {kGpu}), view, store) == asked);
  }
}

TEST_CASE("fp32 is slow on GPUs alone") {
  CHECK(is_slow_compute(ComputeType::kFP32, site_with("a", {kCpu, kGpu})));
  CHECK_FALSE(is_slow_compute(ComputeType::kFP32, site_with("a", {kCpu})));
  CHECK_FALSE(is_slow_compute(ComputeType::kBF16, site_with("a", {kGpu})));
}

}  // namespace farstep
