// Validates theta_global on a site's part of the validation set when that is due.
#pragma once

#include <cstdint>

#include "trainer/model/task.h"
#include "trainer/round/run.h"

namespace farstep {

class SiteValidation : public Validator {
 public:
  // Validates a run that trains `model` of `task`. Both arguments must outlive this.
  SiteValidation(const Task& task, TrainableModel& model) : task_(task), model_(model) {}

  bool run_if_due(Run& run, int64_t sequences_before, const std::stop_token& stop) override;

 private:
  bool is_due(const Run& run, int64_t sequences_before) const;

  const Task& task_;
  TrainableModel& model_;
};

}  // namespace farstep
