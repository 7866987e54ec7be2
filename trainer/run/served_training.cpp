#include "trainer/run/served_training.h"

#include "trainer/base/error.h"

namespace farstep {

void ServedTraining::begin(const StepDraws& draws) {
  const int64_t batch = draws.own().batch;
  FARSTEP_CHECK(batch == 0, "a site that serves alone has a batch of {}", batch);
}

std::optional<StepDone> ServedTraining::step(const StepOrder& order, SiteReduction* gradients,
                                             const std::stop_token& /*stop*/) {
  FARSTEP_CHECK(gradients != nullptr, "a site that serves alone has gradients to add up");
  const auto span = recorder_.span(SpanCause::kServe, order.round);
  inner_.run_serving({order.rate_share, order.learning_rate_factor, false, order.progress},
                     *gradients);
  return std::nullopt;
}

}  // namespace farstep
