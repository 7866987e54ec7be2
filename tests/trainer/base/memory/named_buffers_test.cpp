#include "trainer/base/memory/named_buffers.h"

#include <tuple>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

TEST_CASE("dtypes have the names and sizes of safetensors") {
  for (const auto& [dtype, name, bytes] :
       {std::tuple{DType::kF32, "F32", 4U}, std::tuple{DType::kBF16, "BF16", 2U},
        std::tuple{DType::kF16, "F16", 2U}, std::tuple{DType::kI64, "I64", 8U}}) {
    CHECK(name_of(dtype) == name);
    CHECK(dtype_from_name(name) == dtype);
    CHECK(size_of(dtype) == bytes);
  }
  CHECK_THROWS_AS(dtype_from_name("f32"), DataError);
  CHECK_THROWS_AS(dtype_from_name(""), DataError);
}

TEST_CASE("a scalar has one element and an empty extent none") {
  CHECK(num_elements({}) == 1);
  CHECK(num_elements(std::vector<int64_t>{3, 5, 1}) == 15);
  CHECK(num_elements(std::vector<int64_t>{3, 0, 7}) == 0);
}
