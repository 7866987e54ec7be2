#include "trainer/round/theta_swap.h"

#include <algorithm>
#include <iterator>

namespace farstep {

void swap_global_and_local(Run& run) {
  if (run.strategy.local_is_global()) return;
  run.handover.wait_for_copies();
  const auto global = run.strategy.theta_global();
  const outer_optimizer::Range all{0, std::ssize(global)};
  auto& theta = run.site.theta();
  const auto local = theta.pull(all);
  // Exchanged instead of copied: a third array of the model's size is not needed.
  std::ranges::swap_ranges(local, global);
  theta.push(all, local);
}

}  // namespace farstep
