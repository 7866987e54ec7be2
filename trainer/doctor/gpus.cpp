#include "trainer/doctor/gpus.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr const char* kGpus = "gpus";
constexpr double kGpuGigabyte = 1e9;
constexpr int kLeastDriver = 580;  // the first with CUDA 13

// The driver's functions by hand: the program links none of its libraries.
class DriverLibrary {
 public:
  DriverLibrary() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {}

  template <typename Function>
  Function find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
  }

 private:
  void* const library_;  // stays loaded: LibTorch may use it too
};

std::vector<Gpu> gpus_of(const DriverLibrary& library) {
  using Init = int (*)(unsigned flags);
  using Count = int (*)(int* count);
  using Device = int (*)(int* device, int ordinal);
  using Name = int (*)(char* name, int length, int device);
  using Memory = int (*)(std::size_t * bytes, int device);
  const auto init = library.find<Init>("cuInit");
  const auto get_count = library.find<Count>("cuDeviceGetCount");
  const auto get_device = library.find<Device>("cuDeviceGet");
  const auto get_name = library.find<Name>("cuDeviceGetName");
  const auto get_memory = library.find<Memory>("cuDeviceTotalMem_v2");
  int count = 0;
  if (!init || !get_count || !get_device || !get_name || !get_memory || init(0) != 0 ||
      get_count(&count) != 0) {
    return {};
  }
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    std::array<char, 256> name{};
    std::size_t bytes = 0;
    if (get_device(&device, i) != 0 ||
        get_name(name.data(), static_cast<int>(name.size()) - 1, device) != 0 ||
        get_memory(&bytes, device) != 0) {
      return gpus;
    }
    gpus.push_back({name.data(), static_cast<int64_t>(bytes)});
  }
  return gpus;
}

std::string text_of(const GpuDriver& driver) {
  std::vector<std::string> gpus;
  for (const auto& gpu : driver.gpus) {
    gpus.push_back(fmt::format("{} with {:.1f} GB", gpu.name,
                               static_cast<double>(gpu.memory_bytes) / kGpuGigabyte));
  }
  return fmt::format("driver {}, {}", driver.version,
                     gpus.empty() ? "no usable GPU" : fmt::format("{}", fmt::join(gpus, ", ")));
}

// The first device of the site whose GPU is too small for its part of the model.
std::optional<std::string> too_small(const GpuDriver& driver, const SiteConfig& site,
                                     const MemoryNeeds& needs) {
  for (std::size_t i = 0; i < site.devices.size(); ++i) {
    const auto& device = site.devices[i];
    if (!needs.gpus[i] || device.index >= std::ssize(driver.gpus)) continue;
    const int64_t has = driver.gpus[static_cast<std::size_t>(device.index)].memory_bytes;
    if (needs.gpus[i]->total() <= has) continue;
    return fmt::format(
        "devices[{}]: has {}, and the run takes {}: lower plan.micro_batch, train a smaller model, "
        "or use a larger GPU",
        i, bytes_text(has), text_of(*needs.gpus[i]));
  }
  return std::nullopt;
}

}  // namespace

std::string driver_version_in(const std::string& text) {
  std::istringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;) {
    const auto is_part = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
    if (word.find('.') != std::string::npos && std::ranges::all_of(word, is_part)) return word;
  }
  return "";
}

GpuDriver read_gpu_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::ostringstream text;
  text << file.rdbuf();
  GpuDriver driver{.version = driver_version_in(text.str()), .gpus = {}};
  if (!driver.version.empty()) driver.gpus = gpus_of(DriverLibrary());
  return driver;
}

Finding gpu_finding(const GpuDriver& driver, const SiteConfig& site, bool has_kernels,
                    const std::optional<MemoryNeeds>& needs) {
  const bool wants_gpu = std::ranges::any_of(
      site.devices, [](const auto& device) { return device.kind == DeviceKind::kCuda; });
  const std::string build = has_kernels ? "" : "; this program was built without CUDA";
  if (!wants_gpu) {
    return ok(kGpus, driver.version.empty() ? "no NVIDIA driver, and the site uses no GPU" + build
                                            : text_of(driver) + "; the site uses no GPU" + build);
  }
  if (driver.version.empty()) {
    return fault(kGpus, ErrorKind::kConfig,
                 fmt::format("no NVIDIA driver is loaded, and `devices` has a GPU: install driver "
                             "{} or later{}",
                             kLeastDriver, build));
  }
  int major = 0;
  std::from_chars(driver.version.data(), driver.version.data() + driver.version.size(), major);
  const auto text = text_of(driver);
  if (major < kLeastDriver) {
    return fault(kGpus, ErrorKind::kConfig,
                 fmt::format("{}: install driver {} or later", text, kLeastDriver));
  }
  if (const auto small = needs ? too_small(driver, site, *needs) : std::nullopt) {
    return fault(kGpus, ErrorKind::kConfig, *small);
  }
  if (!has_kernels) {
    return warning(kGpus, text +
                              "; this program was built without CUDA, so GPUs train slower: "
                              "install a CUDA 13 toolkit and build again");
  }
  return ok(kGpus, text);
}

}  // namespace farstep
