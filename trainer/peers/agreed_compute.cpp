// Sites must compute in one type, or their steps would differ in quality. Where the run leaves it
// open, one GPU anywhere is enough for bf16: a CPU can emulate it, and a GPU is several times
// faster in it.
#include "trainer/peers/agreed_compute.h"

#include <fmt/format.h>

#include <algorithm>

namespace farstep {

namespace {

bool has_gpu(const SiteConfig& site) {
  return std::ranges::any_of(
      site.devices, [](const DeviceConfig& device) { return device.kind == DeviceKind::kCuda; });
}

// Without a generation: the type is the run's.
std::string key_of(const std::string& site) {
  return fmt::format("compute/{}", site);
}

}  // namespace

ComputeType own_compute(ComputeType asked, const SiteConfig& site) {
  if (asked != ComputeType::kAuto) return asked;
  return has_gpu(site) ? ComputeType::kBF16 : ComputeType::kFP32;
}

ComputeType agreed_compute(ComputeType asked, const SiteConfig& own, const View& view,
                           wan::Store& store) {
  if (asked != ComputeType::kAuto) return asked;
  store.put(key_of(own.name), std::string(name_of(own_compute(asked, own))));
  return known_compute(asked, view.members, store);
}

ComputeType known_compute(ComputeType asked, const std::vector<std::string>& sites,
                          wan::Store& store) {
  if (asked != ComputeType::kAuto) return asked;
  const bool gpu_somewhere = std::ranges::any_of(sites, [&](const std::string& site) {
    return store.get(key_of(site)) == name_of(ComputeType::kBF16);
  });
  return gpu_somewhere ? ComputeType::kBF16 : ComputeType::kFP32;
}

bool is_slow_compute(ComputeType compute, const SiteConfig& site) {
  return compute == ComputeType::kFP32 && has_gpu(site);
}

}  // namespace farstep
