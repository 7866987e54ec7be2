#include "outer_optimizer/schedule/partition.h"

#include "trainer/base/error.h"

namespace farstep {

Range equal_part(int64_t n, int index, int num_parts) {
  FARSTEP_CHECK(n >= 0 && 0 <= index && index < num_parts, "part {} of {} of {} elements", index,
                num_parts, n);
  return {n * index / num_parts, n * (index + 1) / num_parts};
}

}  // namespace farstep
