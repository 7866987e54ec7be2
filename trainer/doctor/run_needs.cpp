#include "trainer/doctor/run_needs.h"

#include <algorithm>

namespace farstep {

namespace {

constexpr int64_t kChunkBytes = int64_t{64} << 20;  // under way at most

// Whether theta_local differs from theta_global between two rounds, so that a checkpoint has both.
bool keeps_own_weights(const RunConfig& run) {
  return run.sync.fragments > 1 || run.sync.delay_steps > 0 || run.sync.alpha > 0 ||
         run.strategy.kind == outer_optimizer::StrategyKind::kEagerUpdates;
}

}  // namespace

RunNeeds run_needs(int64_t num_parameters, const RunConfig& run, const SiteConfig& site) {
  const int64_t model = 4 * num_parameters;
  const bool is_eager = run.strategy.kind == outer_optimizer::StrategyKind::kEagerUpdates;
  const int64_t fragments = is_eager ? 1 : run.sync.fragments;
  const int64_t fragment = model / fragments;
  const int64_t own_sites = std::max<int64_t>(1, run.most_sites());
  const bool has_residuals =
      run.sync.codec.kind != outer_optimizer::CodecKind::kFp32 && run.sync.codec.feeds_back();
  const int64_t residuals = has_residuals ? model + model / own_sites : 0;
  const int64_t snapshot = (keeps_own_weights(run) ? 3 : 2) * model;

  RunNeeds needs{.host_bytes = kChunkBytes + 2 * model + fragment + snapshot,
                 .first_gpu_bytes = 4 * model,
                 .other_gpu_bytes = 2 * model,
                 .checkpoint_bytes = 2 * model + snapshot + residuals};
  if (run.sync.delay_steps > 0) needs.host_bytes += 2 * fragment;
  if (has_residuals) needs.host_bytes += residuals + residuals / fragments;
  if (is_eager) {
    needs.host_bytes += 3 * model;
    needs.checkpoint_bytes += 3 * model;
  }
  // Weights and gradients of every CPU slice, and AdamW's moments of the first. A site without
  // devices updates its copy on the CPU.
  if (site.devices.empty()) needs.host_bytes += 4 * model;
  for (std::size_t i = 0; i < site.devices.size(); ++i) {
    if (site.devices[i].kind == DeviceKind::kCpu) needs.host_bytes += (i == 0 ? 4 : 2) * model;
  }
  return needs;
}

int64_t kept_checkpoints(const RunConfig& run) {
  return run.checkpoint.keep + (run.inner.rate.schedule == RateShape::kWsd ? 1 : 0);
}

}  // namespace farstep
