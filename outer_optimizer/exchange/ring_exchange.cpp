#include "outer_optimizer/exchange/ring_exchange.h"

#include "trainer/base/error.h"

namespace farstep {

void RingExchange::average(const SyncPoint& point, std::span<float> values,
                           const Leftovers& leftovers) {
  FARSTEP_CHECK(leftovers.of_delta.empty() && leftovers.of_mean.empty(),
                "a ring leaves nothing out");
  const auto coefficient =
      static_cast<float>(point.coefficients.at(static_cast<std::size_t>(rank_)));
  for (auto& value : values) value *= coefficient;
  ring_.all_reduce(values);
}

}  // namespace farstep
