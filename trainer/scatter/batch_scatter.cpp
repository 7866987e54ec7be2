// One task a step: it reads the batches of all sites, hands out its own, and sees to it that the
// others leave. The next task comes after that, so at most two steps' batches are in memory.
#include "trainer/scatter/batch_scatter.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/loader.h"
#include "trainer/scatter/batch_messages.h"

namespace farstep {

namespace {

// The batches of a step, by place, and what is sent of them.
struct StepBatches {
  std::vector<Batch> batches;
  Transfers transfers;  // end before their memory
};

}  // namespace

BatchScatter::BatchScatter(const Examples& examples, const Sampler& sampler,
                           outer_optimizer::Exchanges& exchanges)
    : examples_(examples), sampler_(sampler), exchanges_(exchanges) {}

void BatchScatter::begin(const StepDraws& draws) {
  FARSTEP_CHECK(!own_.valid(), "a batch of the steps before was sent, and not trained on");
  draws_ = draws;
  num_asked_ = 0;
  exchanges_.among(draws.view);
  connections_ = &exchanges_.connections(draws.view);
  prefetch();
}

Batch BatchScatter::next() {
  FARSTEP_CHECK(own_.valid(), "a batch is asked for beyond the steps of the plan");
  Batch batch = own_.get();
  // The worker began with this step after the one before had left. Throws if it has not.
  if (sent_.valid()) sent_.get();
  prefetch();
  return batch;
}

void BatchScatter::prefetch() {
  if (num_asked_ == draws_.steps) return;
  const BatchStep step{.generation = draws_.view.generation,
                       .round = draws_.round,
                       .step = draws_.steps_done + num_asked_ + 1};
  // Here and not in the worker, as in Loader.
  std::vector<std::vector<Draw>> draws;
  for (const auto& site : draws_.sites) draws.push_back(draws_of(sampler_, site, num_asked_));
  ++num_asked_;
  const auto own = std::make_shared<std::promise<Batch>>();
  own_ = own->get_future();
  sent_ = std::move(sending_);
  sending_ = worker_.submit(
      [this, own, step, draws = std::move(draws), self = draws_.view.self, to = connections_] {
        StepBatches all;
        try {
          // All of them first: a step for which one cannot be read begins nowhere.
          for (const auto& of_site : draws) all.batches.push_back(examples_.draw(of_site));
          for (std::size_t place = 0; place < all.batches.size(); ++place) {
            if (place == self) continue;
            auto sent = send_batch(*to, static_cast<int>(place), step, all.batches[place].view);
            std::ranges::move(sent, std::back_inserter(all.transfers));
          }
          own->set_value(all.batches[self]);
        } catch (...) {
          own->set_exception(std::current_exception());
          return;
        }
        for (const auto& transfer : all.transfers) transfer->wait();
      });
}

}  // namespace farstep
