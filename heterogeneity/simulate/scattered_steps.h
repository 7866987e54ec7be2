// The batches of a simulated run whose master sends all sites theirs (strategy.scatter). Without
// that, everything is there at once.
//
// The batches of a step leave the master together, over the line on which its values follow. Those
// of the next step leave when a step begins. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heterogeneity/simulate/network.h"
#include "heterogeneity/simulate/scenario.h"

namespace farstep::heterogeneity {

class ScatteredSteps {
 public:
  // Both must outlive this. `scenario` must be a result of scenario_from_json().
  ScatteredSteps(const Scenario& scenario, const Network& network);

  // Goes to steps with these batches, by site id. All sites take part.
  void plan(std::span<const int64_t> batches);
  // Lets the batches of a step leave at this time, or when those before have left.
  void send(double now_seconds);

  // Returns when a site has its batch of the step that was sent last, and when the master's line is
  // free again; 0: at any time.
  double arrival_seconds(std::size_t site) const;
  double line_free_seconds() const { return line_free_seconds_; }
  // Returns the bytes of a step that a site sends and receives.
  int64_t sent_bytes(std::size_t site) const;
  int64_t received_bytes(std::size_t site) const { return bytes_[site]; }

 private:
  const Scenario& scenario_;
  const Network& network_;
  const std::size_t master_;    // its site id
  std::vector<int64_t> bytes_;  // to each site
  ScatterCost cost_;
  double sent_seconds_ = 0, line_free_seconds_ = 0;
};

}  // namespace farstep::heterogeneity
