#include "outer_optimizer/exchange/ring_exchange.h"

#include "trainer/base/error.h"

namespace farstep {

// The ring only adds, so each site multiplies by its coefficient before. All sites get the same
// bits, because each part of the sum is added up in one place and copied.
void RingExchange::average(const SyncPoint& point, std::span<float> values,
                           const ResidualSpans& residuals) {
  FARSTEP_CHECK(residuals.of_delta.empty() && residuals.of_mean.empty(),
                "a ring exchange in fp32 has no residuals");
  const auto coefficient =
      static_cast<float>(point.coefficients.at(static_cast<std::size_t>(rank_)));
  for (auto& value : values) value *= coefficient;
  ring_.all_reduce(values);
}

}  // namespace farstep
