// All that `farstep doctor` looks at: the checks of `farstep check`, the machine, and the network
// up to the other sites. Belongs to one thread.
#pragma once

#include <stop_token>

#include "trainer/base/clock.h"
#include "trainer/doctor/finding.h"
#include "trainer/settings/load_config.h"

namespace farstep {

struct Examination {
  bool peers = false;         // meets the other sites, where the same is done at the same time
  double wait_seconds = 120;  // how long it waits for them
  double probe_seconds = 1;   // of LinkProbe
  bool has_kernels = false;   // the program was built with CUDA
};

// Tells each finding as it is made. Takes the site's own ports for a moment, and writes no file
// that stays. Returns false if a stop was requested before the end.
bool examine(const LoadedSite& loaded, const Examination& examination, Clock& clock,
             const std::stop_token& stop, const Tell& tell);

}  // namespace farstep
