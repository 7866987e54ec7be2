#include "trainer/scatter/scattered_batches.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

ScatteredBatches::ScatteredBatches(ExampleForm form, std::string master,
                                   outer_optimizer::Exchanges& exchanges)
    : form_(std::move(form)), master_(std::move(master)), exchanges_(exchanges) {}

void ScatteredBatches::begin(const StepDraws& draws) {
  FARSTEP_CHECK(!incoming_, "a batch of the steps before has not been trained on");
  draws_ = draws;
  num_asked_ = 0;
  exchanges_.among(draws.view);
  prefetch();
}

Batch ScatteredBatches::next() {
  FARSTEP_CHECK(incoming_, "a batch is asked for beyond the steps of the plan");
  Batch batch = incoming_->wait();
  incoming_.reset();
  prefetch();
  return batch;
}

void ScatteredBatches::prefetch() {
  if (num_asked_ == draws_.steps) return;
  const auto& view = draws_.view;
  const auto master = std::ranges::find(view.members, master_) - view.members.begin();
  FARSTEP_CHECK(master < std::ssize(view.members), "{} is no member", master_);
  ++num_asked_;
  const BatchStep step{
      .generation = view.generation, .round = draws_.round, .step = draws_.steps_done + num_asked_};
  incoming_.emplace(exchanges_.connections(view), static_cast<int>(master), step, form_,
                    draws_.own().batch);
}

}  // namespace farstep
