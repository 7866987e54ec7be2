#include "trainer/data/images/cifar_file.h"

#include <array>
#include <fstream>
#include <system_error>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr ImageShape kShape{.channels = 3, .height = 32, .width = 32};
constexpr int64_t kPixels = 3 * 32 * 32;
constexpr int64_t kRecordBytes = 1 + kPixels;
constexpr uint8_t kClasses = 10;

}  // namespace

// The format has no header: its size and its labels are all that tells it from other bytes.
void append_cifar_file(const std::filesystem::path& path, LabelledImages& images, int64_t records) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(fmt::format("{}: {}", path.string(), why));
  };
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) refuse(fmt::format("cannot be read: {}", error.message()));
  if (bytes != records * kRecordBytes) {
    refuse(fmt::format("has {} bytes; a file of CIFAR-10's binary version has {}: fetch it again",
                       bytes, records * kRecordBytes));
  }
  std::ifstream file(path, std::ios::binary);
  images.shape = kShape;
  for (int64_t number = 0; number < records; ++number) {
    std::array<char, kRecordBytes> record{};
    if (!file.read(record.data(), kRecordBytes)) refuse("cannot be read to its end");
    const auto label = static_cast<uint8_t>(record.front());
    if (label >= kClasses) {
      refuse(fmt::format("byte {}: label {} is above {}: is not a file of CIFAR-10",
                         number * kRecordBytes, label, kClasses - 1));
    }
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), record.begin() + 1, record.end());
  }
}

}  // namespace farstep
