#include "wan/roster/served_run.h"

namespace farstep {

int64_t ServedRun::term_after(int64_t term) const {
  if (!place) return term + 1;
  const int64_t above = (*place - term - 1) % kMostCoordinators;
  return term + 1 + (above + kMostCoordinators) % kMostCoordinators;
}

}  // namespace farstep
