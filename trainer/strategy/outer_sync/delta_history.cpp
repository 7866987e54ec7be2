#include "trainer/strategy/outer_sync/delta_history.h"

#include <cmath>

#include "outer_optimizer/schedule/extent.h"
#include "outer_optimizer/schedule/outliers.h"

namespace farstep {

namespace {

// Enough for a median that one odd round does not move, few enough to follow the training.
constexpr std::size_t kPaces = 8;

}  // namespace

void DeltaHistory::restart(int64_t fragments, bool is_known) {
  DeltaPast past;
  if (!is_known) past.largest.reset();
  past_.assign(static_cast<std::size_t>(fragments), past);
}

outer_optimizer::DeltaFigures DeltaHistory::figures(int64_t fragment, std::span<const float> delta,
                                                    const outer_optimizer::Work& work,
                                                    double step_bound, bool has_residual) const {
  const auto& past = past_.at(static_cast<std::size_t>(fragment));
  const auto extent = outer_optimizer::extent_of(delta);
  outer_optimizer::DeltaFigures figures{.norm = extent.norm, .largest = extent.largest};
  if (work.rates && (past.largest || !has_residual)) {
    figures.bound = step_bound == 0 ? 0 : step_bound + (has_residual ? *past.largest : 0);
  }
  figures.known_paces = std::ssize(past.paces);
  if (past.paces.empty()) return figures;
  figures.usual_pace = outer_optimizer::median(past.paces);
  auto distances = past.paces;
  for (auto& pace : distances) pace = std::abs(pace - figures.usual_pace);
  figures.pace_spread = outer_optimizer::median(std::move(distances));
  return figures;
}

void DeltaHistory::add(int64_t fragment, const outer_optimizer::DeltaFigures& figures,
                       const outer_optimizer::Work& work) {
  auto& past = past_.at(static_cast<std::size_t>(fragment));
  past.largest = figures.largest;
  const auto pace = outer_optimizer::pace_of(figures.norm, work);
  if (!pace) return;
  past.paces.push_back(*pace);
  if (past.paces.size() > kPaces) past.paces.erase(past.paces.begin());
}

}  // namespace farstep
