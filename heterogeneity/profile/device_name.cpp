#include "heterogeneity/profile/device_name.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <fstream>

namespace farstep::heterogeneity {

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "cpu";
}

}  // namespace

std::string cpu_name(int64_t threads) {
  return fmt::format("{}, {} {}", processor_name(), threads, threads == 1 ? "thread" : "threads");
}

// The driver's library is there already: whoever opened the GPU has loaded it.
std::string gpu_name(int index) {
  using GetDevice = int (*)(int* device, int ordinal);
  using GetName = int (*)(char* name, int length, int device);
  const auto unnamed = fmt::format("cuda:{}", index);
  // From the driver by hand, so that this library needs neither LibTorch nor CUDA's headers.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return unnamed;
  const auto get_device = reinterpret_cast<GetDevice>(dlsym(driver, "cuDeviceGet"));
  const auto get_name = reinterpret_cast<GetName>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name{};
  int number = 0;
  const bool found = get_device != nullptr && get_name != nullptr &&
                     get_device(&number, index) == 0 &&
                     get_name(name.data(), static_cast<int>(name.size()), number) == 0;
  return found ? std::string(name.data()) : unnamed;
}

}  // namespace farstep::heterogeneity
