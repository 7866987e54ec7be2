#include "heterogeneity/plan/sync_plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "outer_optimizer/codec/make_codec.h"

namespace farstep {

namespace {

constexpr std::array kCodecs{CodecKind::kFp32, CodecKind::kInt8, CodecKind::kInt4};
constexpr std::array<int64_t, 7> kFragments{1, 2, 4, 8, 16, 32, 64};

// Loss in nats: what int8 and int4 with error feedback cost at about 50 local steps, and what a
// delay costs in proportion to its share of the round (0.01 for 5 steps of 50).
double loss_cost(CodecKind codec, double delay_share) {
  const double of_codec = codec == CodecKind::kInt4 ? 0.001 : codec == CodecKind::kInt8 ? 1e-5 : 0;
  return of_codec + 0.1 * delay_share;
}

// What a connection carries a round trip, where the system has its usual buffers.
constexpr double kWindowBits = 8e6;
constexpr int64_t kLeastLanes = 2, kMostLanes = 16;
constexpr double kMbit = 1e6;

int64_t lanes_for(const SyncFacts& facts) {
  const double peers = static_cast<double>(std::max<int64_t>(1, facts.num_sites - 1));
  const double needed =
      std::ceil(facts.uplink_bits_per_second * facts.rtt_seconds / kWindowBits / peers);
  return std::clamp(static_cast<int64_t>(needed), kLeastLanes, kMostLanes);
}

SyncPlan sync_with(const SyncFacts& facts, CodecKind codec, int64_t fragments,
                   int64_t delay_steps) {
  SyncPlan plan{.codec = codec,
                .lanes = lanes_for(facts),
                .fragments = fragments,
                .delay_steps = delay_steps,
                .sync_seconds = fragment_sync_seconds(facts, codec, fragments)};
  const double hidden_seconds = facts.step_seconds * static_cast<double>(delay_steps);
  const double train_seconds = facts.step_seconds * static_cast<double>(facts.base_steps);
  plan.exposed_seconds =
      static_cast<double>(fragments) * std::max(0.0, plan.sync_seconds - hidden_seconds);
  plan.exposed_share = plan.exposed_seconds / (train_seconds + plan.exposed_seconds);
  return plan;
}

// Whether `plan` is to be preferred; of equals the one that was there first is.
bool is_better(const SyncFacts& facts, const SyncPlan& plan, const SyncPlan& than,
               double target_share) {
  const auto keeps_target = [&](const SyncPlan& some) {
    return some.exposed_share <= target_share;
  };
  const auto cost = [&](const SyncPlan& some) {
    return loss_cost(some.codec,
                     static_cast<double>(some.delay_steps) / static_cast<double>(facts.base_steps));
  };
  if (keeps_target(plan) != keeps_target(than)) return keeps_target(plan);
  return keeps_target(plan) ? cost(plan) < cost(than) : plan.exposed_share < than.exposed_share;
}

std::string text_of(const SyncFacts& facts, const SyncPlan& plan, double target_share) {
  auto text = fmt::format(
      "{} in {} over {} connections a pair: a sync of {:.2f} s at {:.0f} Mbit/s and {:.0f} ms",
      name_of(plan.codec),
      plan.fragments == 1 ? "one piece" : fmt::format("{} fragments", plan.fragments), plan.lanes,
      plan.sync_seconds, facts.uplink_bits_per_second / kMbit, 1e3 * facts.rtt_seconds);
  if (plan.delay_steps > 0) {
    text += fmt::format(
        ", {:.2f} s of it behind {} steps of training",
        std::min(plan.sync_seconds, facts.step_seconds * static_cast<double>(plan.delay_steps)),
        plan.delay_steps);
  }
  return text + fmt::format("; {:.2f} s of a round are exposed, {:.1f} %{}", plan.exposed_seconds,
                            100 * plan.exposed_share,
                            plan.exposed_share <= target_share
                                ? ""
                                : fmt::format(", more than the {:.1f} % asked for: only more "
                                              "local steps or faster links can do better",
                                              100 * target_share));
}

}  // namespace

std::optional<SyncFacts> sync_facts(std::span<const SiteKnowledge> sites, const PlanConfig& config,
                                    int64_t parameters) {
  SyncFacts facts{.parameters = parameters,
                  .num_sites = std::ssize(sites),
                  .uplink_bits_per_second = std::numeric_limits<double>::infinity(),
                  .base_steps = config.base_steps};
  for (const auto& site : sites) {
    const auto seconds =
        step_seconds(site, config.base_batch, config.micro_batch.value_or(config.base_batch));
    if (!seconds || !site.profile) return std::nullopt;
    facts.step_seconds = std::max(facts.step_seconds, *seconds);
    double uplink = 0;
    for (const auto& link : site.profile->links) {
      uplink = std::max(uplink, link.bandwidth_bits_per_second.value_or(0));
      facts.rtt_seconds = std::max(facts.rtt_seconds, link.rtt_seconds.value_or(0));
    }
    if (uplink == 0 && sites.size() > 1) return std::nullopt;
    if (sites.size() > 1) {
      facts.uplink_bits_per_second = std::min(facts.uplink_bits_per_second, uplink);
    }
  }
  return facts;
}

double fragment_sync_seconds(const SyncFacts& facts, CodecKind codec, int64_t fragments) {
  if (facts.num_sites < 2) return 0;
  const auto sites = static_cast<double>(facts.num_sites);
  const auto encoded_bytes =
      static_cast<double>(make_codec({.kind = codec})->encoded_bytes(facts.parameters));
  const double sent_bits =
      8 * 2 * (sites - 1) / sites * encoded_bytes / static_cast<double>(fragments);
  return sent_bits / facts.uplink_bits_per_second + 3 * facts.rtt_seconds;
}

SyncPlan plan_sync(const SyncFacts& facts, double target_share) {
  std::optional<SyncPlan> best;
  const auto consider = [&](const SyncPlan& plan) {
    if (!best || is_better(facts, plan, *best, target_share)) best = plan;
  };
  for (const auto codec : kCodecs) {
    for (const auto fragments : kFragments) {
      if (fragments > facts.base_steps) continue;
      consider(sync_with(facts, codec, fragments, 0));
      const double seconds = fragment_sync_seconds(facts, codec, fragments);
      const auto enough_steps = static_cast<int64_t>(std::ceil(seconds / facts.step_seconds));
      consider(
          sync_with(facts, codec, fragments, std::min(facts.base_steps / fragments, enough_steps)));
    }
  }
  best->reason = text_of(facts, *best, target_share);
  return *best;
}

}  // namespace farstep
