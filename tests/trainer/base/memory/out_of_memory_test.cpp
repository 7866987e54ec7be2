#include "trainer/base/memory/out_of_memory.h"

#include <new>
#include <stdexcept>

#include "tests/support/catch.h"

namespace farstep {

TEST_CASE("a lack of memory is known by its type or its words") {
  CHECK(is_out_of_memory(std::bad_alloc()));
  CHECK(is_out_of_memory(std::bad_array_new_length()));
  CHECK(is_out_of_memory(NoRoomError("devices[0]: its memory has no room", 2)));
  CHECK(is_out_of_memory(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB")));
  CHECK(is_out_of_memory(std::runtime_error(
      "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")));
}

TEST_CASE("no other error is a lack of memory") {
  CHECK(!is_out_of_memory(std::runtime_error("an illegal memory access was encountered")));
  CHECK(!is_out_of_memory(std::runtime_error("")));
  CHECK(!is_out_of_memory(ConfigError("inner.compute: is missing")));
}

TEST_CASE("a lack of room is a bad configuration to whoever started the program") {
  CHECK(NoRoomError("no room", 0).exit_code() == ConfigError("bad").exit_code());
}

}  // namespace farstep
