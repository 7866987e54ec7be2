// Runs, views and plain vectors of numbers for tests of sites without a model.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/checksum.h"
#include "trainer/settings/run_config.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

// theta_local as a vector.
class VectorTheta : public LocalTheta {
 public:
  explicit VectorTheta(std::vector<float>& values) : values_(values) {}
  std::span<float> pull(const outer_optimizer::Range& range) override {
    return std::span(values_).subspan(static_cast<std::size_t>(range.begin),
                                      static_cast<std::size_t>(range.size()));
  }
  void start_pull(const outer_optimizer::Range& range) override {
    const auto values = pull(range);
    pulled_.assign(values.begin(), values.end());
  }
  std::span<float> finish_pull() override { return pulled_; }
  void push(const outer_optimizer::Range& range, std::span<const float> values) override {
    if (values.data() != pull(range).data()) std::ranges::copy(values, pull(range).begin());
  }

 private:
  std::vector<float>& values_;
  std::vector<float> pulled_;
};

// How fast a step draws a value of a site, and to where; they differ by site and value.
inline double pull_of(std::size_t site, int value) {
  return 0.1 + 0.02 * value + 0.05 * double(site);
}
inline double place_of(std::size_t site, int value) {
  return double(site) - 0.3 * value;
}

// A run of `num_sites` sites whose syncs are as given.
inline RunConfig strategy_run(int num_sites, int64_t fragments, int64_t delay_steps, double alpha,
                              int64_t base_steps) {
  RunConfig run;
  for (int site = 0; site < num_sites; ++site) {
    run.sites.emplace_back().name = "s" + std::to_string(site);
  }
  run.sync.fragments = fragments;
  run.sync.delay_steps = delay_steps;
  run.sync.alpha = alpha;
  run.plan.base_steps = base_steps;
  return run;
}

// A step that leads every site and every value elsewhere, and depends on where they are.
inline void wander(std::vector<float>& theta, int site) {
  for (std::size_t k = 0; k < theta.size(); ++k) {
    theta[k] += 0.1F * std::sin(theta[k] * static_cast<float>(site + 2) + static_cast<float>(k));
  }
}

inline std::vector<float> start_values(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t k = 0; k < size; ++k) values[k] = std::cos(static_cast<float>(k));
  return values;
}

inline std::string hash_of(std::span<const float> values) {
  return checksum_text(checksum(std::as_bytes(values)));
}

inline StrategySettings settings_of(const RunConfig& run) {
  return strategy_settings(run);
}

inline View view_of(const RunConfig& run, std::size_t self) {
  View view{.generation = 1, .members = {}, .self = self};
  for (const auto& site : run.sites) view.members.push_back(site.name);
  return view;
}

}  // namespace farstep
