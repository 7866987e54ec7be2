// What all sites know of the run's validations, and whether the loss of the newest has risen far.
//
// Each site validates a part of the set, and tells its sums with its next syncs. So every site
// judges a validation by the same figures, in the round after it.
//
// The loss has risen if it exceeds the best of the last eight by 0.5 and by six of their standard
// deviations. More than half of the parts must exceed that too: one site's broken sum is no rise.
// Sources: six deviations as OLMo-core's rule for skipped steps; going back, with other data after
// it, as PaLM, Chowdhery et al. 2022, section 5.1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/knowledge/partial_validation.h"
#include "trainer/config/fields.h"
#include "trainer/validation/evaluate_config.h"

namespace farstep {

struct ValidationLoss {
  int64_t round = 0;  // rounds that theta_global had done
  double loss = 0;    // mean of all targets

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "rounds that theta_global had done", required(in_range(0, 1e15)));
    visit("loss", loss, "mean loss of all targets", kRequired);
  }
  bool operator==(const ValidationLoss&) const = default;
};

struct Rise {
  ValidationLoss newest, best;
  // The second one within eight validations, though the run went back after the first.
  bool is_second = false;
};

// A value that is equal at all members between two rounds.
struct ValidationHistory {
  static constexpr std::size_t kMostLosses = 8;

  OnRise on_rise = OnRise::kWarn;
  std::vector<ValidationLoss> losses = {};  // that did not rise, oldest first; after `warn` all
  int64_t judged_round = -1;                // the newest validation that was judged
  int64_t warned_validations = 0;           // in which a rise is the second one

  // Judges the newest validation of `parts`, which the sites of a sync have brought. Returns
  // nullopt if its loss has not risen, or if it was judged before.
  std::optional<Rise> add(std::span<const heterogeneity::PartialValidation> parts);

  // Returns the newest round whose checkpoint has weights from before any rise, if checkpoints are
  // made every `every_rounds` rounds; nullopt: none is known, or a rise has no consequence.
  std::optional<int64_t> round_to_go_back_to(int64_t every_rounds) const;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("on_rise", on_rise, "evaluate.on_rise as the losses were kept", kRequired);
    visit("losses", losses, "of the last validations", required(in_range(0, kMostLosses)));
    visit("judged_round", judged_round, "the newest validation that was judged; -1: none",
          required(in_range(-1, 1e15)));
    visit("warned_validations", warned_validations,
          "the next validations in which a rise is the second one",
          required(in_range(0, kMostLosses)));
  }
  bool operator==(const ValidationHistory&) const = default;
};

}  // namespace farstep
