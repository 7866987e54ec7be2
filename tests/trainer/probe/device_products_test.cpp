#include "trainer/probe/device_products.h"

#include <ATen/Context.h>

#include <exception>
#include <functional>

#include "tests/support/catch.h"
#include "trainer/base/memory/out_of_memory.h"

namespace farstep {

namespace {

DeviceProducts small_products() {
  return {.device = at::kCPU,
          .products = {{.inner = 32, .columns = 48, .times = 2}, {.inner = 48, .columns = 32}},
          .rows = 64,
          .seconds = 0.01};
}

}  // namespace

TEST_CASE("A processor's products are measured in every type that it has") {
  const RealClock clock;
  for (const auto type : {ProductType::kFP32, ProductType::kBF16}) {
    const auto tflops = measure_tflops(small_products(), type, clock);
    REQUIRE(tflops);
    CHECK(*tflops > 0);
    CHECK(*tflops < 1000);
  }
  CHECK(!measure_tflops(small_products(), ProductType::kTF32, clock));
}

TEST_CASE("The setting of TF32 is as before a measurement") {
  const RealClock clock;
  const bool before = at::globalContext().allowTF32CuBLAS();
  measure_tflops(small_products(), ProductType::kFP32, clock);
  CHECK(at::globalContext().allowTF32CuBLAS() == before);
}

TEST_CASE("One row and a single column are measured as well") {
  const RealClock clock;
  auto wanted = small_products();
  wanted.rows = 1;
  wanted.products = {{.inner = 1, .columns = 1}};
  CHECK(measure_tflops(wanted, ProductType::kFP32, clock).value() > 0);
}

TEST_CASE("LibTorch's lack of memory is known as that") {
  const auto lacks_memory = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return is_out_of_memory(error);
    }
    return false;
  };
  CHECK(lacks_memory([] { at::empty({int64_t{1} << 60}, at::kByte); }));
  CHECK(!lacks_memory([] { at::empty({2}).view({3}); }));
}

}  // namespace farstep
