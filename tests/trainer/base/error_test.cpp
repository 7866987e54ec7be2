#include "trainer/base/error.h"

#include "tests/support/catch.h"
#include "trainer/base/named_buffers.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("every kind of error has the exit code of the contract") {
  CHECK(InternalError("x").exit_code() == 1);
  CHECK(ConfigError("x").exit_code() == 2);
  CHECK(DataError("x").exit_code() == 3);
  CHECK(PeerError("north", "x").exit_code() == 4);
  const PeerError lost("north", "no heartbeat");
  CHECK(lost.site() == "north");
  CHECK(std::string(lost.what()) == "no heartbeat");
}

TEST_CASE("a check that holds is silent and evaluates its condition once") {
  int evaluations = 0;
  FARSTEP_CHECK(++evaluations == 1, "not shown");
  CHECK(evaluations == 1);
}

TEST_CASE("a check that fails says where and what") {
  const int found = 3;
  CHECK_THROWS_AS([&] { FARSTEP_CHECK(found == 4, "found {}", found); }(), InternalError);
  CHECK_THROWS_WITH([&] { FARSTEP_CHECK(found == 4, "found {}", found); }(),
                    Contains("error_test.cpp:") && Contains("found == 4: found 3"));
}

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
