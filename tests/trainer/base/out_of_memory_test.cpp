#include "trainer/base/out_of_memory.h"

#include <new>
#include <stdexcept>

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a lack of memory is known by its type or its words") {
  CHECK(is_out_of_memory(std::bad_alloc()));
  CHECK(is_out_of_memory(std::bad_array_new_length()));
  CHECK(is_out_of_memory(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")));
  CHECK(is_out_of_memory(std::runtime_error(
      "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")));
}

TEST_CASE("no other error is a lack of memory") {
  CHECK(!is_out_of_memory(std::runtime_error("an illegal memory access was encountered")));
  CHECK(!is_out_of_memory(std::runtime_error("")));
}

}  // namespace farstep
