// The cores that a thread may run on.
#pragma once

#include <cstdint>
#include <vector>

namespace farstep {

using Cores = std::vector<int64_t>;

// Returns the cores that the calling thread may run on, in ascending order. Throws InternalError.
Cores allowed_cores();

}  // namespace farstep
