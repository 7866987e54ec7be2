#include "outer_optimizer/exchange/ring_exchange.h"

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

// The ring only adds, so each site multiplies by its coefficient before. All sites get the same
// bits, because each part of the sum is added up in one place and copied.
void RingExchange::average(const SyncPoint& point, std::span<float> values,
                           const ResidualSpans& residuals) {
  FARSTEP_CHECK(residuals.of_delta.empty() && residuals.of_mean.empty(),
                "a ring exchange in fp32 has no residuals");
  FARSTEP_CHECK(point.hops == wan::Hops::kThereBack, "a ring has no owners of values");
  const auto coefficient =
      static_cast<float>(point.coefficients.at(static_cast<std::size_t>(rank_)));
  for (auto& value : values) value *= coefficient;
  ring_.all_reduce(values);
}

void RingExchange::average_parts(const SyncPoint& point,
                                 std::span<const std::vector<Range>> partitions, FinalParts& source,
                                 std::span<float> values) {
  for (std::size_t number = 0; number < partitions.size(); ++number) {
    source.wait_until_final(number);
    const auto& ranges = partitions[number];
    average(point, part(values, {ranges.front().begin, ranges.back().end}));
  }
}

}  // namespace farstep::outer_optimizer
