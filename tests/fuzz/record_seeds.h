// Seeds for the targets that read records: `events` and `records`.
#pragma once

#include "tests/fuzz/corpus.h"

namespace farstep {

void add_events(Corpus& corpus);
// Whole files in one piece, and line by line with restarts.
void add_records(Corpus& corpus);

}  // namespace farstep
