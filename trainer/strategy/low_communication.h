// Many local steps, then one outer step on the sites' mean pseudo-gradient (DiLoCo, Douillard et
// al. 2023).
//
// A sync: delta -> arrive at the coordinator -> exchange -> vote on the hash that theta_global
// would have -> apply. The peers are waited for in `arrive` and nowhere else, so the time there is
// the site's idle time in the papers' sense, and the time of exchange and vote is the WAN's.
#pragma once

#include <functional>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/outer_optimizer.h"
#include "trainer/config/run_config.h"
#include "trainer/strategy/strategy.h"
#include "trainer/telemetry/recorder.h"
#include "wan/membership/member.h"

namespace farstep {

class LowCommunication : public Strategy {
 public:
  // Of site `site_id`; starts from theta_global = `theta`. `parameter_at` names the parameter that
  // holds an element of the flat vector, for messages. The references must outlive the strategy.
  LowCommunication(const OuterConfig& config, std::size_t site_id, std::span<const float> theta,
                   Member& member, Exchange& exchange, Recorder& recorder,
                   std::function<std::string(int64_t)> parameter_at);

  std::span<float> theta_global() override { return outer_.mutable_theta_global(); }
  std::span<float> outer_momentum() override { return outer_.mutable_momentum(); }
  std::optional<SyncRecord> end_round(int64_t round, const Contribution& contribution,
                                      std::span<float> theta_local, std::stop_token stop) override;

 private:
  void take_delta(int64_t round, std::span<const float> theta_local);

  const AveragingRule averaging_;
  const std::size_t site_id_;
  OuterOptimizer outer_;
  Member& member_;
  Exchange& exchange_;
  Recorder& recorder_;
  const std::function<std::string(int64_t)> parameter_at_;
  std::vector<float> delta_;  // becomes the mean in the exchange
};

}  // namespace farstep
