// Validates theta_global on a site's part of the validation set when that is due.
#pragma once

#include <cstdint>

#include "trainer/model/task.h"
#include "trainer/round/run.h"

namespace farstep {

// The cost limit of validations if evaluate.every_rounds is null, as a share of the training
// between two of them.
inline constexpr double kValidationShare = 0.01;

// Returns whether a validation with `examples` is due after a round that took all sites from
// `examples_before` to `examples_after` training examples. The interval is the number of examples
// whose training makes the validation cost kValidationShare. A validation is due at the first
// round's end after each interval. The result depends on the arguments alone, so all sites agree.
bool is_validation_due(int64_t examples_before, int64_t examples_after, int64_t examples);

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
