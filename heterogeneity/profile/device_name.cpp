#include "heterogeneity/profile/device_name.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <fstream>

namespace farstep {

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "cpu";
}

// By the driver, which LibTorch's CUDA library has loaded.
std::string gpu_name(at::Device device) {
  using GetDevice = int (*)(int* device, int ordinal);
  using GetName = int (*)(char* name, int length, int device);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return device.str();
  const auto get_device = reinterpret_cast<GetDevice>(dlsym(driver, "cuDeviceGet"));
  const auto get_name = reinterpret_cast<GetName>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name{};
  int number = 0;
  const bool found = get_device != nullptr && get_name != nullptr &&
                     get_device(&number, device.index()) == 0 &&
                     get_name(name.data(), static_cast<int>(name.size()), number) == 0;
  return found ? std::string(name.data()) : device.str();
}

}  // namespace

std::string device_name(at::Device device, int64_t threads) {
  if (!device.is_cpu()) return gpu_name(device);
  return fmt::format("{}, {} {}", processor_name(), threads, threads == 1 ? "thread" : "threads");
}

}  // namespace farstep
