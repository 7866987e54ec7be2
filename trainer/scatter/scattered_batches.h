// The source of batches of a site to which the master sends them (strategy.scatter): it has no
// examples of its own.
//
// While a step is trained on, the transport receives the batch of the next one. The training thread
// calls all methods. What is still being received at the end is given up, which ends the
// connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/data/batch_source.h"
#include "trainer/data/example_form.h"
#include "trainer/scatter/batch_messages.h"

namespace farstep {

class ScatteredBatches : public BatchSource {
 public:
  // Takes examples of this form from the site `master`. `exchanges` must outlive this.
  ScatteredBatches(ExampleForm form, std::string master, outer_optimizer::Exchanges& exchanges);

  // Also connects to the members of a view that is new: all of them call it at the same time.
  void begin(const StepDraws& draws) override;
  Batch next() override;
  bool comes_from_peer() const override { return true; }

 private:
  // Begins to receive the batch of the next step, if there is one.
  void prefetch();

  const ExampleForm form_;
  const std::string master_;
  outer_optimizer::Exchanges& exchanges_;
  StepDraws draws_;
  int64_t num_asked_ = 0;                  // steps of draws_ whose batches have been asked for
  std::optional<IncomingBatch> incoming_;  // of the newest of them
};

}  // namespace farstep
