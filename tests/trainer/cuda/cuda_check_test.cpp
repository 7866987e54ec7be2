#include "trainer/cuda/cuda_check.h"

#include "tests/support/catch.h"

namespace farstep {
namespace {

TEST_CASE("a call that CUDA refuses is an internal error with its text and message") {
  CHECK_THROWS_AS(FARSTEP_CUDA_CHECK(cudaErrorInvalidValue), InternalError);
  CHECK_THROWS_WITH(FARSTEP_CUDA_CHECK(cudaErrorInvalidValue),
                    Catch::Contains("cuda_check_test.cpp") &&
                        Catch::Contains("cudaErrorInvalidValue: invalid argument"));
  CHECK_NOTHROW(FARSTEP_CUDA_CHECK(cudaSuccess));
}

TEST_CASE("memory that ran out is told from other errors") {
  CHECK_THROWS_AS(FARSTEP_CUDA_CHECK(cudaErrorMemoryAllocation), OutOfDeviceMemory);
}

}  // namespace
}  // namespace farstep
