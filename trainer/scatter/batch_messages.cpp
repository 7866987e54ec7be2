#include "trainer/scatter/batch_messages.h"

#include <fmt/format.h>

#include <utility>

#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

wan::Tag tag_of(const BatchStep& step, std::size_t part) {
  return {.generation = static_cast<uint64_t>(step.generation),
          .round = static_cast<uint64_t>(step.round),
          .fragment = static_cast<uint32_t>(step.step),
          .phase = outer_optimizer::kBatchPhase,
          .chunk = static_cast<uint32_t>(part)};
}

}  // namespace

Transfers send_batch(wan::Transport& transport, int to, const BatchStep& step,
                     const BatchView& batch) {
  Transfers transfers;
  for (std::size_t part = 0; part < batch.parts.size(); ++part) {
    transfers.push_back(transport.send(to, tag_of(step, part), batch.parts[part].bytes));
  }
  return transfers;
}

IncomingBatch::IncomingBatch(wan::Transport& transport, int from, const BatchStep& step,
                             const ExampleForm& form, int64_t examples)
    : transport_(transport),
      from_(from),
      step_(step),
      form_(form),
      blank_(blank_batch(form, examples)) {
  for (std::size_t part = 0; part < blank_.parts.size(); ++part) {
    transfers_.push_back(transport.receive(from, tag_of(step, part), blank_.parts[part]));
  }
}

Batch IncomingBatch::wait() {
  const auto& sender = transport_.site(from_);
  const auto name = fmt::format("the batch of step {} of round {}, which {} sends", step_.step,
                                step_.round, sender);
  try {
    for (const auto& transfer : transfers_) transfer->wait();
  } catch (const PeerError& error) {
    throw PeerError(error.site(), fmt::format("{}, has not come: {}", name, error.what()));
  }
  transfers_.clear();
  // They index the model's memory.
  if (const auto unfit = unfit_value(form_, blank_.batch.view)) {
    throw PeerError(sender, fmt::format("{}, cannot be used: {}", name, *unfit));
  }
  return std::move(blank_.batch);
}

}  // namespace farstep
