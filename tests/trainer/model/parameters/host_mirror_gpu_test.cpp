#include "trainer/model/parameters/host_mirror.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/model/first_gpu.h"

namespace farstep {
namespace {

constexpr int64_t kSize = 10'000'001;

bool all_are(std::span<const float> values, float value) {
  return std::ranges::all_of(values, [=](float own) { return own == value; });
}

TEST_CASE("a pull from a GPU has the values of its start however training goes on", "[gpu]") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  const auto tensor = at::zeros({kSize}, at::TensorOptions(*gpu).dtype(at::kFloat));
  HostMirror mirror(tensor);
  for (int step = 1; step <= 20; ++step) {
    tensor.add_(1);
    mirror.start_pull(3, kSize - 4);
    for (int later = 0; later < 5; ++later) tensor.mul_(-1);
    tensor.mul_(-1);
    const auto values = mirror.finish_pull();
    REQUIRE(std::ssize(values) == kSize - 4);
    REQUIRE(all_are(values, static_cast<float>(step)));
  }
}

TEST_CASE("values pushed to a GPU may be changed at once", "[gpu]") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  const auto tensor = at::zeros({kSize}, at::TensorOptions(*gpu).dtype(at::kFloat));
  HostMirror mirror(tensor);
  std::vector<float> values(kSize - 1);
  for (int step = 1; step <= 20; ++step) {
    std::ranges::fill(values, static_cast<float>(step));
    mirror.push(1, values);
    std::ranges::fill(values, -1.0F);
    tensor.mul_(2);
    REQUIRE(all_are(mirror.pull(1, kSize - 1), static_cast<float>(2 * step)));
    REQUIRE(mirror.pull(0, 1)[0] == 0);
  }
}

TEST_CASE("all values of a GPU tensor are pulled and pushed", "[gpu]") {
  const auto gpu = first_gpu();
  if (!gpu) return;
  const auto tensor = at::ones({3, 5}, at::TensorOptions(*gpu).dtype(at::kFloat));
  HostMirror mirror(tensor);
  const auto values = mirror.pull();
  REQUIRE(all_are(values, 1));
  values[7] = 4;
  mirror.push();
  const auto part = mirror.pull(7, 2);
  CHECK(std::vector<float>(part.begin(), part.end()) == std::vector<float>{4, 1});
  CHECK(mirror.pull(15, 0).empty());
}

}  // namespace
}  // namespace farstep
