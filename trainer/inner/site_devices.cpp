// The first device is driven by the calling thread, every other one by a thread of its own. All are
// waited for in any case, because their tasks refer to the caller's variables.
#include "trainer/inner/site_devices.h"

#include <future>

namespace farstep {

void SiteDevices::run_on(std::size_t device, const std::function<void(std::size_t)>& task) {
  if (device == 0) return task(device);
  others_.at(device - 1)->submit([&task, device] { task(device); }).get();
}

std::vector<std::exception_ptr> SiteDevices::try_on_all(
    const std::function<void(std::size_t)>& task) {
  std::vector<std::exception_ptr> thrown(size());
  const auto guarded = [&](std::size_t device) noexcept {
    try {
      task(device);
    } catch (...) {
      thrown[device] = std::current_exception();
    }
  };
  std::vector<std::future<void>> running;
  for (std::size_t device = 1; device < size(); ++device) {
    running.push_back(others_[device - 1]->submit([&guarded, device] { guarded(device); }));
  }
  guarded(0);
  // Waits for all, since tasks refer to this function's variables.
  for (auto& one : running) one.get();
  return thrown;
}

void SiteDevices::run_on_all(const std::function<void(std::size_t)>& task) {
  for (const auto& thrown : try_on_all(task)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

}  // namespace farstep
