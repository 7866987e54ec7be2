#include "trainer/base/processor/allowed_cores.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace farstep {

Cores allowed_cores() {
  cpu_set_t set;
  FARSTEP_CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity: {}",
                std::strerror(errno));
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace farstep
