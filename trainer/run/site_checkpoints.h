// Writes the checkpoints of a site's run while training goes on, and restores the run from one.
//
// Belongs to the training thread, except wait_until_whole().
#pragma once

#include "trainer/checkpoint/checkpointer.h"
#include "trainer/round/run.h"
#include "trainer/run/site_ground.h"
#include "trainer/run/site_model.h"

namespace farstep {

class SiteCheckpoints : public Checkpoints {
 public:
  // Makes checkpoints of a run that trains `model` of `task`. `ground`, `task` and `model` must
  // outlive this.
  SiteCheckpoints(const RunConfig& config, const SiteGround& ground, const Task& task,
                  SiteModel& model);

  // Saves no state that the newest checkpoint already has.
  void begin(Run& run) override;
  void collect(Run& run) override;
  void finish(Run& run) override;
  void leave_after(int64_t round) override;
  bool load_global(Run& run, int64_t round) override;

  // Returns when the newest checkpoint is complete. Any thread may call it.
  void wait_until_whole() { checkpointer_.wait_until_whole(); }
  // Waits for the checkpoint under way; logs errors instead of throwing. Afterwards no state of the
  // run is read.
  void end() { checkpointer_.end(); }

  // Restores the run's state of `resumed`, and forgets newer checkpoints. Sets aside those of later
  // rounds if the site was told from which round to resume. Returns where the learning rate's
  // schedule stood. Throws DataError.
  RateState restore(Run& run, const CheckpointEntry& resumed);

 private:
  // Returns the state that only this site has: the inner optimizer's moments, the strategy's own
  // buffers, and the weights if they differ from theta_global.
  NamedBuffers own_buffers(Run& run);
  TrainProgress progress_of(const Run& run) const;

  const SiteGround& ground_;
  const Task& task_;
  SiteModel& model_;
  Json newest_;  // the progress in the newest checkpoint of this process, without times
  Checkpointer checkpointer_;
};

}  // namespace farstep
