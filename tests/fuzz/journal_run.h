// The run whose journals are fuzzed.
#pragma once

#include "wan/admission/served_run.h"

namespace farstep {

inline wan::ServedRun journal_run() {
  return {.config = {{"name", "run"}}, .sites = {"a", "b"}, .fragments = 1, .min_sites = 1};
}

}  // namespace farstep
