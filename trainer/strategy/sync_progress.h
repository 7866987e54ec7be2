// How far a site's syncs have come: what a checkpoint keeps of a strategy besides its tensors.
// Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/config/fields.h"
#include "wan/membership/protocol.h"

namespace farstep {

// A site's work that is in a fragment of its theta_local, but not yet in theta_global.
struct FragmentWork {
  int64_t steps = 0;
  int64_t tokens = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "inner steps since the fragment was last applied", required(at_least(0)));
    visit("tokens", tokens, "tokens of these steps", required(at_least(0)));
  }
};

struct SyncProgress {
  int64_t fragments_applied = 0;
  std::vector<FragmentWork> work;
  std::optional<Contribution> sent;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("fragments_applied", fragments_applied, "fragments of the present round that are applied",
          required(at_least(0)));
    visit("work", work, "what each fragment has to bring", kRequired);
    visit("sent", sent, "what went with a delta that was sent and not yet applied; null: none was",
          kRequired);
  }
};

}  // namespace farstep
