#include "outer_optimizer/exchange/ring_exchange.h"

#include <algorithm>

namespace farstep {

void RingExchange::average(const SyncPoint& point, std::span<float> values,
                           std::span<float> residual) {
  const auto coefficient =
      static_cast<float>(point.coefficients.at(static_cast<std::size_t>(rank_)));
  for (auto& value : values) value *= coefficient;
  std::ranges::fill(residual, 0.0F);
  ring_.all_reduce(values);
}

}  // namespace farstep
