// Validates theta_global on a site's share of the windows when that is due.
#pragma once

#include "trainer/model/trainable_model.h"
#include "trainer/round/run.h"
#include "trainer/run/site_ground.h"

namespace farstep {

class SiteValidation : public Validator {
 public:
  // Validates a run that trains `model`. Both arguments must outlive this.
  SiteValidation(const SiteGround& ground, TrainableModel& model)
      : ground_(ground), model_(model) {}

  void run_if_due(Run& run, int64_t sequences_before) override;

 private:
  bool is_due(const Run& run, int64_t sequences_before) const;
  // Swaps theta_global and the model's theta_local, unless they are equal.
  void swap_global_and_local(Strategy& strategy);

  const SiteGround& ground_;
  TrainableModel& model_;
};

}  // namespace farstep
