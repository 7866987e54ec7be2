// Tries every codec, number of fragments and useful delay, which are a few dozen, and ranks them by
// the loss that they cost. The cheapest one that meets the target wins. A sync's time comes from
// the closed form in wan/link/link_time.h.
#include "heterogeneity/plan/sync_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "outer_optimizer/codec/make_codec.h"
#include "wan/link/lanes.h"
#include "wan/link/link_time.h"

namespace farstep::heterogeneity {

namespace {

// The codecs to choose from, and the loss of each in nats, to rank syncs by. int4 with error
// feedback costs 0.0002 at 92 local steps, -0.0007 to +0.0015 by seed (docs/results/codecs.md), and
// 0.0005 to 0.0016 at 50 and 100 (docs/results/few_bits.md). It counts as 0.001. int8 is closer to
// fp32 than a seed's spread and only needs a rank. int2 costs -0.006 to +0.014 without error
// feedback at 50 and 100 local steps (docs/results/few_bits.md), and counts as 0.015. Others are
// not chosen: fp16 and bf16 take more bytes than int8, and top_k cost 0.1 and more.
struct PlannedCodec {
  outer_optimizer::CodecKind kind;
  double loss;
};
constexpr std::array kCodecs{
    PlannedCodec{outer_optimizer::CodecKind::kFp32, 0},
    PlannedCodec{outer_optimizer::CodecKind::kInt8, 1e-5},
    PlannedCodec{outer_optimizer::CodecKind::kInt4, 1e-3},
    PlannedCodec{outer_optimizer::CodecKind::kInt2, 1.5e-2}};  // in order of loss and bytes
constexpr std::array<int64_t, 7> kFragments{1, 2, 4, 8, 16, 32, 64};

// The speed that a line is planned for, as a share of the measured one. Then the shares of loss or
// exposed time that a sync may have at most to replace another. The gaps between these values keep
// the sites from changing back and forth. A figure that differs by less than a fifth is not adopted
// (kLinkNoise in planner.cpp), hence the 0.8.
constexpr double kCarefulSpeed = 0.8, kHalfTheLoss = 0.5, kLessExposed = 0.8;

// A delay costs in proportion to its share of the round: 0.01 nats for 5 steps of 50. That figure
// is of small models, measured outside this project.
constexpr double kLossOfDelay = 0.1;

double bytes_of(outer_optimizer::CodecKind codec) {
  constexpr int64_t kValues = 1 << 20;  // many blocks, so that a last one does not count
  return static_cast<double>(outer_optimizer::make_codec({.kind = codec})->encoded_bytes(kValues));
}

// A codec that is not chosen counts as the first one that takes no more bytes.
double loss_of(outer_optimizer::CodecKind codec) {
  const auto row = std::ranges::find_if(kCodecs, [bytes = bytes_of(codec)](const auto& planned) {
    return bytes_of(planned.kind) <= bytes;
  });
  return row == kCodecs.end() ? kCodecs.back().loss : row->loss;
}

// The time of delta, residuals, hashes and outer step, which are passes over the values. At 215M
// values a sync took 1.05 s more than its exchange (docs/results/saving.md).
constexpr double kWorkSecondsPerValue = 5e-9;
// Without a margin, 12 steps of delay left up to 0.45 s exposed. With a fifth, 23 steps left 0.00 s
// (docs/results/wan_exchange.md).
constexpr double kMargin = 1.2;  // a delay that surely hides a sync lasts so many times as long
constexpr double kMbit = 1e6;

// The slowest uplink and the longest round trip. link_facts() returns nullopt if an uplink is
// unknown.
struct LinkFacts {
  double uplink_bits_per_second = std::numeric_limits<double>::infinity();
  double rtt_seconds = 0;
};
std::optional<LinkFacts> link_facts(std::span<const SiteKnowledge> sites) {
  LinkFacts facts;
  for (const auto& site : sites) {
    facts.rtt_seconds = std::max(facts.rtt_seconds, rtt_seconds(site).value_or(0));
    if (sites.size() < 2) continue;
    const auto uplink = uplink_bits_per_second(site);
    if (!uplink) return std::nullopt;
    facts.uplink_bits_per_second = std::min(facts.uplink_bits_per_second, *uplink);
  }
  return facts;
}

double sync_seconds(const SyncFacts& facts, const outer_optimizer::CodecConfig& codec,
                    int64_t fragments) {
  if (facts.num_sites < 2) return 0;
  const auto parts = static_cast<double>(fragments);
  const auto encoded_bytes =
      static_cast<double>(outer_optimizer::make_codec(codec)->encoded_bytes(facts.parameters));
  // Arrival and Go are a round trip, and so are vote and commit.
  const double control_seconds = 2 * facts.rtt_seconds;
  const double work_seconds = kWorkSecondsPerValue * static_cast<double>(facts.parameters);
  return control_seconds + work_seconds / parts +
         wan::reduce_gather_seconds(encoded_bytes / parts, facts.num_sites,
                                    facts.uplink_bits_per_second, facts.rtt_seconds / 2);
}

SyncPlan sync_with(const SyncFacts& facts, const outer_optimizer::CodecConfig& codec,
                   int64_t fragments, int64_t delay_steps) {
  SyncPlan plan{
      .codec = codec.kind,
      .lanes = wan::lanes_for(facts.num_sites, facts.uplink_bits_per_second, facts.rtt_seconds),
      .fragments = fragments,
      .delay_steps = delay_steps,
      .sync_seconds = sync_seconds(facts, codec, fragments)};
  const double hidden_seconds = facts.step_seconds * static_cast<double>(delay_steps);
  const double train_seconds = facts.step_seconds * static_cast<double>(facts.base_steps);
  // Fragments are synced one after the other, and each exposes what its delay does not hide.
  plan.exposed_seconds =
      static_cast<double>(fragments) *
      std::max(0.0, (delay_steps > 0 ? kMargin : 1) * plan.sync_seconds - hidden_seconds);
  plan.exposed_share = plan.exposed_seconds / (train_seconds + plan.exposed_seconds);
  return plan;
}

double loss_cost(const SyncFacts& facts, const SyncPlan& plan) {
  const double delay_share =
      static_cast<double>(plan.delay_steps) / static_cast<double>(facts.base_steps);
  return loss_of(plan.codec) + kLossOfDelay * delay_share;
}

// Returns whether `plan` is better than `than`; false if they are equal.
bool is_better(const SyncFacts& facts, const SyncPlan& plan, const SyncPlan& than,
               double target_share) {
  const auto keeps_target = [&](const SyncPlan& some) {
    return some.exposed_share <= target_share;
  };
  if (keeps_target(plan) != keeps_target(than)) return keeps_target(plan);
  return keeps_target(plan) ? loss_cost(facts, plan) < loss_cost(facts, than)
                            : plan.exposed_share < than.exposed_share;
}

// Returns the reason of a plan in words; `over` is the part about the connections.
std::string text_of(const SyncFacts& facts, const SyncPlan& plan, double target_share,
                    const std::string& over) {
  if (facts.num_sites < 2) return "one site sends its delta to no other";
  auto text = fmt::format(
      "{} in {}{}: a sync of {:.2f} s at {:.{}f} Mbit/s and {:.0f} ms", name_of(plan.codec),
      plan.fragments == 1 ? "one piece" : fmt::format("{} fragments", plan.fragments), over,
      plan.sync_seconds, facts.uplink_bits_per_second / kMbit,
      facts.uplink_bits_per_second < 10 * kMbit ? 1 : 0, 1e3 * facts.rtt_seconds);
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

// A choice from half of the figures would differ as soon as the others are known, so it waits for
// all. The slowest site's step counts: a delay of k steps lasts longest there.
std::optional<SyncFacts> sync_facts(std::span<const SiteKnowledge> sites, const PlanConfig& config,
                                    int64_t parameters) {
  const auto links = link_facts(sites);
  if (!links) return std::nullopt;
  SyncFacts facts{.parameters = parameters,
                  .num_sites = std::ssize(sites),
                  .uplink_bits_per_second = links->uplink_bits_per_second,
                  .rtt_seconds = links->rtt_seconds,
                  .base_steps = config.base_steps};
  for (const auto& site : sites) {
    const auto seconds =
        step_seconds(site, config.base_batch, config.micro_batch.value_or(config.base_batch));
    if (!seconds) return std::nullopt;
    facts.step_seconds = std::max(facts.step_seconds, *seconds);
  }
  return facts;
}

std::optional<int64_t> lanes_for(std::span<const SiteKnowledge> sites) {
  const auto links = link_facts(sites);
  if (!links || sites.size() < 2) return std::nullopt;
  return wan::lanes_for(std::ssize(sites), links->uplink_bits_per_second, links->rtt_seconds);
}

double fragment_sync_seconds(const SyncFacts& facts, outer_optimizer::CodecKind codec,
                             int64_t fragments) {
  return sync_seconds(facts, {.kind = codec}, fragments);
}

SyncPlan plan_sync(const SyncFacts& facts, double target_share) {
  std::optional<SyncPlan> best;
  const auto consider = [&](const SyncPlan& plan) {
    if (!best || is_better(facts, plan, *best, target_share)) best = plan;
  };
  // On equal terms the first choice wins, so the simpler one comes first: less coding, then fewer
  // fragments, then no delay.
  for (const auto& [codec, loss] : kCodecs) {
    for (const auto fragments : kFragments) {
      if (fragments > facts.base_steps) continue;
      consider(sync_with(facts, {.kind = codec}, fragments, 0));
      const double seconds = fragment_sync_seconds(facts, codec, fragments);
      const auto enough_steps =
          static_cast<int64_t>(std::ceil(kMargin * seconds / facts.step_seconds));
      // Two fragments are never under way at once, so a delay ends before the next fragment is
      // sent.
      consider(sync_with(facts, {.kind = codec}, fragments,
                         std::min(facts.base_steps / fragments, enough_steps)));
    }
  }
  best->reason =
      text_of(facts, *best, target_share, fmt::format(" over {} connections a pair", best->lanes));
  return *best;
}

SyncPlan sync_by(const SyncFacts& facts, const outer_optimizer::SyncConfig& now) {
  return sync_with(facts, now.codec, now.fragments, now.delay_steps);
}

std::optional<SyncPlan> better_sync(const SyncFacts& facts, double target_share,
                                    const outer_optimizer::SyncConfig& now) {
  const auto current = sync_by(facts, now);
  auto careful = facts;
  careful.uplink_bits_per_second *= kCarefulSpeed;
  const auto chosen = plan_sync(careful, target_share);
  // Both are compared by the measured line. By the careful one the current sync would look worse
  // than it is, and be replaced for no reason.
  auto fresh = sync_with(facts, {.kind = chosen.codec}, chosen.fragments, chosen.delay_steps);
  if (current.exposed_share > target_share) {
    if (fresh.exposed_share > kLessExposed * current.exposed_share) return std::nullopt;
  } else {
    const double loss = loss_cost(facts, current);
    if (loss == 0 || loss_cost(facts, fresh) > kHalfTheLoss * loss) return std::nullopt;
    if (chosen.exposed_share > target_share) return std::nullopt;
  }
  fresh.reason =
      text_of(facts, fresh, target_share, "") +
      fmt::format(
          "; {} in {} would expose {:.1f} %", name_of(current.codec),
          current.fragments == 1 ? "one piece" : fmt::format("{} fragments", current.fragments),
          100 * current.exposed_share);
  return fresh;
}

outer_optimizer::SyncConfig changed_to(const outer_optimizer::SyncConfig& now,
                                       const SyncPlan& plan) {
  auto sync = now;
  if (plan.codec != now.codec.kind) {
    sync.codec.kind = plan.codec;
    // A block size belongs to a codec, and the new one may not accept it.
    sync.codec.block.reset();  // the codec's own choice
  }
  sync.fragments = plan.fragments;
  sync.delay_steps = plan.delay_steps;
  return sync;
}

}  // namespace farstep::heterogeneity
