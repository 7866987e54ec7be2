// Validation loss of a model, or of one site's share of it.
#pragma once

#include <cstdint>

#include "trainer/data/token_dataset.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

struct EvaluationShare {
  int64_t sequence_length = 1;
  int64_t windows = 0;     // windows to take, spread evenly over the set; 0 is all
  int64_t share = 0;       // which of
  int64_t num_shares = 1;  // how many shares: every num_shares-th window from `share` on
  int64_t batch = 1;       // sequences of one forward
};

struct EvaluationResult {
  double loss_sum = 0;  // over all targets
  int64_t tokens = 0;   // targets; 0 where the share is empty
};

// Sums the model's loss over the share's windows. Over all shares the sums are the whole's.
EvaluationResult evaluate(TrainableModel& model, const TokenDataset& dataset,
                          const EvaluationShare& share);

}  // namespace farstep
