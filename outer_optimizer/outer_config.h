// Settings of the outer optimizer (`outer` of a run file).
#pragma once

#include <cstdint>

#include "outer_optimizer/schedule/averaging.h"
#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

struct OuterConfig {
  int64_t rounds = 10;
  double learning_rate = 0.7;
  double momentum = 0.9;
  AveragingRule averaging = AveragingRule::kBatch;
  int64_t mean_rounds = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rounds", rounds, "outer rounds of the run", at_least(1));
    visit("learning_rate", learning_rate, "eta of the outer Nesterov step", above(0));
    visit("momentum", momentum, "mu of the outer Nesterov step", in_range(0, 0.999999));
    visit("averaging", averaging, "weight of a site's delta in the mean");
    visit("mean_rounds", mean_rounds,
          "last rounds of the run whose outer step goes to the mean of the sites' models, not past "
          "it; strategy eager_updates has none",
          at_least(0));
  }
};

}  // namespace farstep::outer_optimizer
