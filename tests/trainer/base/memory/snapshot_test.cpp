#include "trainer/base/memory/snapshot.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"
#include "trainer/base/worker.h"

using namespace farstep;

namespace {

std::vector<float> values_of(const NamedBuffer& buffer) {
  const auto* const values = reinterpret_cast<const float*>(buffer.bytes.data());
  return {values, values + buffer.bytes.size() / sizeof(float)};
}

}  // namespace

TEST_CASE("a copy holds what the buffers held when it was asked for") {
  Worker worker;
  Snapshot snapshot;
  for (const std::size_t size : {0, 1, 17, 100'000, 5}) {
    std::vector<float> first(size, 1.5F), second(3, 2.5F);
    const auto copies = snapshot.start({f32_buffer("first", first), f32_buffer("second", second)});
    auto copied = worker.submit([&] { snapshot.copy(); });
    snapshot.hold();
    std::ranges::fill(first, 9.0F);
    std::ranges::fill(second, 9.0F);
    copied.get();
    REQUIRE(copies.size() == 2);
    CHECK(copies[0].name == "first");
    CHECK(copies[0].shape == std::vector<int64_t>{static_cast<int64_t>(size)});
    CHECK(values_of(copies[0]) == std::vector<float>(size, 1.5F));
    CHECK(values_of(copies[1]) == std::vector<float>(3, 2.5F));
    CHECK(reinterpret_cast<std::uintptr_t>(copies[1].bytes.data()) % 8 == 0);
  }
}

TEST_CASE("who changes the buffers waits for the copy and for nothing else") {
  Snapshot snapshot;
  CHECK(snapshot.hold() == 0);
  std::vector<float> values(1000, 1.0F);
  for (int step = 0; step < 200; ++step) {
    const auto copies = snapshot.start({f32_buffer("values", values)});
    std::thread other([&] { snapshot.copy(); });
    snapshot.hold();
    CHECK(snapshot.hold() == 0);
    for (auto& value : values) value += 1;
    other.join();
    REQUIRE(values_of(copies[0]) == std::vector<float>(1000, static_cast<float>(step + 1)));
  }
}

TEST_CASE("a copy is asked for before it is made, and made before the next") {
  Snapshot snapshot;
  CHECK_THROWS_AS(snapshot.copy(), InternalError);
  std::vector<float> values(2);
  snapshot.start({f32_buffer("values", values)});
  CHECK_THROWS_AS(snapshot.start({f32_buffer("values", values)}), InternalError);
  snapshot.copy();
  CHECK_NOTHROW(snapshot.start({}));
}
