// Computes the validation loss of a model on all windows or on one site's share of them.
#pragma once

#include <cstdint>

#include "trainer/data/tokens/token_dataset.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

struct EvaluationShare {
  int64_t sequence_length = 1;
  int64_t windows = 0;     // windows of all shares, spread evenly over the set; 0 is all
  int64_t share = 0;       // index of the share
  int64_t num_shares = 1;  // number of shares; one has every num_shares-th window from `share` on
  int64_t batch = 1;       // sequences of one forward pass
};

struct EvaluationResult {
  double loss_sum = 0;  // over all targets
  int64_t tokens = 0;   // targets; 0 where the share is empty
};

// The cost limit of validations if evaluate.every_rounds is null, as a share of the training
// between two of them.
inline constexpr double kValidationShare = 0.01;

// Returns whether a validation of `windows` is due after a round that took all sites from
// `sequences_before` to `sequences_after` training sequences. The interval is the number of
// sequences whose training makes the validation cost kValidationShare. A validation is due at the
// first round's end after each interval. The result depends on the arguments alone, so all sites
// agree.
bool is_validation_due(int64_t sequences_before, int64_t sequences_after, int64_t windows);

// Returns how many of `available` windows are taken if `wanted` are asked for; 0 means all.
int64_t windows_taken(int64_t wanted, int64_t available);

// Sums the model's loss over the share's windows. The sums of all shares add up to the loss over
// all windows.
EvaluationResult evaluate(TrainableModel& model, const TokenDataset& dataset,
                          const EvaluationShare& share);

}  // namespace farstep
