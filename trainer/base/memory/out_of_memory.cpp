#include "trainer/base/memory/out_of_memory.h"

#include <new>
#include <string_view>

namespace farstep {

// LibTorch throws one class for all its errors, so its texts tell them apart: those of its GPU and
// CPU allocators.
bool is_out_of_memory(const std::exception& error) {
  const std::string_view text = error.what();
  return dynamic_cast<const NoRoomError*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         text.find("out of memory") != text.npos || text.find("can't allocate memory") != text.npos;
}

}  // namespace farstep
