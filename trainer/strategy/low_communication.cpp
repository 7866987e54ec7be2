#include "trainer/strategy/low_communication.h"

#include <algorithm>

#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

LowCommunication::LowCommunication(const OuterConfig& config, std::size_t site_id,
                                   std::span<const float> theta, Member& member, Exchange& exchange,
                                   Recorder& recorder,
                                   std::function<std::string(int64_t)> parameter_at)
    : averaging_(config.averaging),
      site_id_(site_id),
      outer_({.learning_rate = static_cast<float>(config.learning_rate),
              .momentum = static_cast<float>(config.momentum)},
             theta),
      member_(member),
      exchange_(exchange),
      recorder_(recorder),
      parameter_at_(std::move(parameter_at)),
      delta_(theta.size()) {}

std::optional<SyncRecord> LowCommunication::end_round(int64_t round,
                                                      const Contribution& contribution,
                                                      std::span<float> theta_local,
                                                      std::stop_token stop) {
  SyncRecord record;
  auto preparation = recorder_.span(SpanCause::kOuter, round);
  take_delta(round, theta_local);
  const auto start_hash = checksum_text(outer_.checksum());
  record.own_seconds += preparation.finish();
  std::optional<Go> go;
  {
    const auto span = recorder_.span(SpanCause::kWait, round);
    go = member_.arrive(round, contribution, start_hash, stop);
  }
  if (!go) return std::nullopt;
  record.generation = go->generation;
  record.contributions = std::move(go->contributions);
  std::vector<Work> works;
  for (const auto& sent : record.contributions) {
    works.push_back({sent.steps, sent.batch, sent.tokens});
  }
  const auto coefficients = averaging_coefficients(averaging_, works);
  record.averaging_weight = coefficients[site_id_];
  {
    const auto span = recorder_.span(SpanCause::kWan, round);
    const std::vector<double> shares(coefficients.size(), 1.0);
    exchange_.average({record.generation, round, 0, coefficients,
                       cut_by_shares({0, std::ssize(delta_)}, shares)},
                      delta_);
  }
  {
    const auto span = recorder_.span(SpanCause::kOuter, round);
    record.theta_hash = checksum_text(outer_.checksum_after(delta_));
  }
  {
    const auto span = recorder_.span(SpanCause::kWan, round);
    member_.vote(round, record.theta_hash);
  }
  auto step = recorder_.span(SpanCause::kOuter, round);
  outer_.apply(delta_);
  std::copy(outer_.theta_global().begin(), outer_.theta_global().end(), theta_local.begin());
  record.own_seconds += step.finish();
  return record;
}

void LowCommunication::take_delta(int64_t round, std::span<const float> theta_local) {
  const int64_t bad = outer_.delta(theta_local, delta_);
  if (bad >= 0) {
    throw InternalError(
        fmt::format("round {}: the delta of {} is not finite at element {} of the model; it is not "
                    "sent. A lower peak_learning_rate may keep the weights finite",
                    round, parameter_at_(bad), bad));
  }
}

}  // namespace farstep
