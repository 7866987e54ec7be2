// Runs kernels on all threads of a CPU slice.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

namespace farstep {

// Calls task(begin, end) for ranges that together cover [0, rows), one for each thread. The ranges
// depend on rows and the number of threads only.
template <typename Task>
void for_rows(int64_t rows, const Task& task) {
  at::parallel_for(0, rows, /*grain_size=*/1, task);
}

}  // namespace farstep
