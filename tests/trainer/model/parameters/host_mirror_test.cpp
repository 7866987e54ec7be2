#include "trainer/model/parameters/host_mirror.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

TEST_CASE("a range of a mirror is the tensor's own memory on a CPU") {
  const auto tensor = at::arange(12, at::kFloat).view({3, 4});
  HostMirror mirror(tensor);
  const auto part = mirror.pull(5, 3);
  CHECK(part.data() == tensor.data_ptr<float>() + 5);
  CHECK(std::vector<float>(part.begin(), part.end()) == std::vector<float>{5, 6, 7});
  part[1] = 60;
  mirror.push(5, part);
  CHECK(tensor[1][2].item<float>() == 60);
  CHECK(mirror.pull().size() == 12);
  CHECK(mirror.pull(12, 0).empty());
}

TEST_CASE("values from elsewhere become the tensor's") {
  const auto tensor = at::zeros({8}, at::kFloat);
  HostMirror mirror(tensor);
  std::vector<float> values(3);
  std::iota(values.begin(), values.end(), 1.0F);
  mirror.push(4, values);
  const auto all = mirror.pull();
  CHECK(std::vector<float>(all.begin(), all.end()) == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 0});
}

TEST_CASE("several threads move all values of a push") {
  const int threads = at::get_num_threads();
  for (const int64_t size : {1, (1 << 20) - 1, (1 << 20) + 3}) {
    at::set_num_threads(3);
    const auto tensor = at::zeros({size + 2}, at::kFloat);
    HostMirror mirror(tensor);
    std::vector<float> values(static_cast<std::size_t>(size));
    std::iota(values.begin(), values.end(), 1.0F);
    mirror.push(1, values);
    const auto all = mirror.pull();
    CHECK(all.front() == 0);
    CHECK(all.back() == 0);
    CHECK(std::ranges::equal(all.subspan(1, values.size()), values));
  }
  at::set_num_threads(threads);
}

TEST_CASE("a pull that was started has the values of its start") {
  const auto tensor = at::arange(12, at::kFloat);
  HostMirror mirror(tensor);
  mirror.start_pull(3, 4);
  tensor.fill_(-1);
  const auto part = mirror.finish_pull();
  CHECK(std::vector<float>(part.begin(), part.end()) == std::vector<float>{3, 4, 5, 6});
  mirror.push(2, part.first(2));
  CHECK(tensor[2].item<float>() == 3);
  mirror.start_pull(0, 1);  // fewer than before
  CHECK(mirror.finish_pull().size() == 1);
  mirror.start_pull(12, 0);
  CHECK(mirror.finish_pull().empty());
}

TEST_CASE("two pulls at a time are a defect and so is the end of none") {
  HostMirror mirror(at::zeros({8}, at::kFloat));
  CHECK_THROWS_AS(mirror.finish_pull(), InternalError);
  mirror.start_pull(0, 3);
  CHECK_THROWS_AS(mirror.start_pull(3, 3), InternalError);
  CHECK(mirror.finish_pull().size() == 3);
}

TEST_CASE("a range beyond the tensor is a defect") {
  HostMirror mirror(at::zeros({8}, at::kFloat));
  CHECK_THROWS_AS(mirror.pull(6, 3), InternalError);
  CHECK_THROWS_AS(mirror.pull(-1, 3), InternalError);
  CHECK_THROWS_AS(mirror.push(7, std::vector<float>(2)), InternalError);
  CHECK_THROWS_AS(mirror.start_pull(8, 1), InternalError);
}

}  // namespace
}  // namespace farstep
