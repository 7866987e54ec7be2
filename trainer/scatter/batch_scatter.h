// The master's source of batches: it reads those of all sites, keeps its own, and sends the others
// theirs (strategy.scatter).
//
// While a step is trained on, a worker reads the batches of the next one and sends them. Training
// waits for the reading alone: a site that has not got its batch holds up the sum of the step's
// gradients, and so the step. No batch is sent for steps beyond those of begin(), because their
// plan may be another one.
//
// Memory: the batches of all sites for a step. The training thread calls all methods. If a site is
// lost, the owner ends the connections before it destroys this, since the worker waits for them.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/worker.h"
#include "trainer/data/batch_source.h"
#include "trainer/data/examples.h"
#include "trainer/data/sampler.h"

namespace farstep {

class BatchScatter : public BatchSource {
 public:
  // `examples` and `exchanges` must outlive this.
  BatchScatter(const Examples& examples, const Sampler& sampler,
               outer_optimizer::Exchanges& exchanges);

  // Also connects to the members of a view that is new: all of them call it at the same time.
  void begin(const StepDraws& draws) override;
  Batch next() override;

 private:
  // Lets the worker read and send the batches of the next step, if there is one.
  void prefetch();

  const Examples& examples_;
  const Sampler sampler_;
  outer_optimizer::Exchanges& exchanges_;
  StepDraws draws_;
  wan::Transport* connections_ = nullptr;  // of the view
  int64_t num_asked_ = 0;                  // steps of draws_ whose batches the worker was asked for
  std::future<Batch> own_;                 // this site's for the newest of them
  std::future<void> sending_, sent_;       // the others' for that one, and for the one before
  Worker worker_;                          // the last member: its tasks use the others
};

}  // namespace farstep
