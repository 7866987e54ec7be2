#include "trainer/cuda/device_array.h"

#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"

namespace farstep {
namespace {

TEST_CASE("an array of nothing needs no GPU") {
  DeviceArray<float> array(0);
  CHECK(array.data() == nullptr);
  CHECK(array.download().empty());
  CHECK_THROWS_AS(array.upload(std::vector<float>(1)), InternalError);
}

TEST_CASE("values come back from a GPU as they went", "[gpu]") {
  if (lacks_gpu()) return;
  std::vector<int> values(1001);
  std::iota(values.begin(), values.end(), -500);
  DeviceArray<int> array{std::span<const int>(values)};
  CHECK(array.download() == values);
  const auto moved = std::move(array);
  CHECK(moved.download() == values);
}

TEST_CASE("more memory than a GPU has is told as such", "[gpu]") {
  if (lacks_gpu()) return;
  CHECK_THROWS_AS(DeviceArray<char>(std::size_t{1} << 50), OutOfDeviceMemory);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

}  // namespace
}  // namespace farstep
