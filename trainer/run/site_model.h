// The run's model on a site's devices, with the inner step that trains it.
#pragma once

#include <memory>
#include <optional>

#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/task.h"
#include "trainer/run/site_ground.h"
#include "trainer/settings/run_config.h"

namespace farstep {

struct SiteModel {
  std::unique_ptr<TrainableModel> model;  // on the first device
  std::unique_ptr<InnerStep> inner;       // trains it, and replicas on the others
};

// Makes the task's model with the values that the run starts from. Matrix products use the same
// kernels as the process that wrote `resumed`, unless that is nullopt. `task` must outlive the
// result. Throws ConfigError or DataError.
SiteModel make_site_model(const Task& task, const SiteGround& ground, const RunConfig& run,
                          const std::optional<CheckpointEntry>& resumed);

}  // namespace farstep
