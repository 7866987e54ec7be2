#include "trainer/model/fused/fp8_layers.h"

#include "trainer/base/error.h"

namespace farstep {

void require_fp8(int major, int minor) {
  if (major > 8 || (major == 8 && minor >= 9)) return;
  throw ConfigError(
      fmt::format("inner.compute: fp8 needs a GPU of compute capability 8.9 or more (Ada, Hopper), "
                  "and this one has {}.{}; set it to bf16",
                  major, minor));
}

}  // namespace farstep
