#include "trainer/peers/agreed_compute.h"

#include <fmt/format.h>

#include <algorithm>

namespace farstep {

namespace {

bool has_gpu(const SiteConfig& site) {
  return std::ranges::any_of(
      site.devices, [](const DeviceConfig& device) { return device.kind == DeviceKind::kCuda; });
}

}  // namespace

ComputeType own_compute(ComputeType asked, const SiteConfig& site) {
  if (asked != ComputeType::kAuto) return asked;
  return has_gpu(site) ? ComputeType::kBF16 : ComputeType::kFP32;
}

ComputeType agreed_compute(ComputeType asked, const SiteConfig& own, const View& view,
                           Store& store) {
  if (asked != ComputeType::kAuto) return asked;
  const auto key = [&](const std::string& site) {
    return fmt::format("{}/compute/{}", view.generation, site);
  };
  const auto name = [](ComputeType type) { return std::string(name_of(type)); };
  store.put(key(own.name), name(own_compute(asked, own)));
  const bool gpu_somewhere = std::ranges::any_of(view.members, [&](const std::string& site) {
    return store.get(key(site)) == name(ComputeType::kBF16);
  });
  return gpu_somewhere ? ComputeType::kBF16 : ComputeType::kFP32;
}

bool is_slow_compute(ComputeType compute, const SiteConfig& site) {
  return compute == ComputeType::kFP32 && has_gpu(site);
}

}  // namespace farstep
