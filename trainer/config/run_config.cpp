#include "trainer/config/run_config.h"

#include <algorithm>
#include <array>
#include <set>

namespace farstep {

namespace {
using Name = std::string_view;
constexpr std::array<Name, 5> kModelPresets{"tiny", "14m", "60m", "150m", "smollm2-135m"};
constexpr std::array<Name, 3> kComputeTypes{"fp32", "bf16", "fp8"};
constexpr std::array<Name, 2> kStepKinds{"fused", "autograd"};
constexpr std::array<Name, 2> kReductionKinds{"buckets", "master"};
constexpr std::array<Name, 2> kInnerOptimizers{"adamw", "sgd"};
constexpr std::array<Name, 2> kDataOrders{"shuffled", "sequential"};
constexpr std::array<Name, 5> kAveragingRules{"uniform", "tokens", "batch", "fednova",
                                              "tokens_squared_per_step"};
constexpr std::array<Name, 5> kPolicies{"uniform", "batch_by_tflops", "batch_by_memory",
                                        "steps_by_tflops", "hybrid"};
constexpr std::array<Name, 2> kRoundEnds{"steps", "deadline"};
constexpr std::array<Name, 7> kCodecKinds{"fp32", "fp16", "bf16", "int8", "int4", "int2", "top_k"};
constexpr std::array<Name, 3> kExchangeKinds{"direct", "parameter_server", "ring"};
constexpr std::array<Name, 2> kPartitionRules{"bytes", "layer"};
constexpr std::array<Name, 2> kSharesRules{"equal", "bandwidth"};
}  // namespace

std::span<const Name> enum_names(ModelPreset) {
  return kModelPresets;
}
std::span<const Name> enum_names(ComputeType) {
  return kComputeTypes;
}
std::span<const Name> enum_names(StepKind) {
  return kStepKinds;
}
std::span<const Name> enum_names(ReductionKind) {
  return kReductionKinds;
}
std::span<const Name> enum_names(InnerOptimizer) {
  return kInnerOptimizers;
}
std::span<const Name> enum_names(DataOrder) {
  return kDataOrders;
}
std::span<const Name> enum_names(AveragingRule) {
  return kAveragingRules;
}

std::span<const Name> enum_names(Policy) {
  return kPolicies;
}
std::span<const Name> enum_names(RoundEnd) {
  return kRoundEnds;
}
std::span<const Name> enum_names(CodecKind) {
  return kCodecKinds;
}
std::span<const Name> enum_names(ExchangeKind) {
  return kExchangeKinds;
}
std::span<const Name> enum_names(PartitionRule) {
  return kPartitionRules;
}
std::span<const Name> enum_names(SharesRule) {
  return kSharesRules;
}

void Deadlines::validate(const std::string& file) const {
  const JsonPlace place{file, "deadlines"};
  if (lost_after_seconds < 3 * heartbeat_seconds) {
    place.member("lost_after_seconds")
        .fail(fmt::format("is {}; must be at least 3 heartbeats of {} s, or a living site is taken "
                          "for lost",
                          lost_after_seconds, heartbeat_seconds));
  }
  if (transfer_stall_seconds <= lost_after_seconds) {
    place.member("transfer_stall_seconds")
        .fail(fmt::format("is {}; must be above lost_after_seconds, {}, so that a lost site is "
                          "named before its transfer is given up",
                          transfer_stall_seconds, lost_after_seconds));
  }
  if (connect_seconds > join_seconds) {
    place.member("connect_seconds")
        .fail(
            fmt::format("is {}; must be at most join_seconds, {}", connect_seconds, join_seconds));
  }
}

std::size_t RunConfig::site_id(const std::string& site) const {
  std::string listed;
  for (std::size_t id = 0; id < sites.size(); ++id) {
    if (sites[id].name == site) return id;
    listed += (id == 0 ? "" : ", ") + sites[id].name;
  }
  throw ConfigError(fmt::format("site '{}' does not take part in run '{}'; its sites are {}", site,
                                name, listed));
}

namespace {

// What members of `sync` must be to go together.
void validate_sync(const SyncConfig& sync, int64_t base_steps, const std::string& file) {
  const JsonPlace place{file, "sync"};
  if (sync.fragments * std::max<int64_t>(1, sync.delay_steps) > base_steps) {
    place.member(sync.delay_steps > 1 ? "delay_steps" : "fragments")
        .fail(fmt::format("{} fragments, each under way for {} steps, do not fit into a round of "
                          "plan.base_steps = {}",
                          sync.fragments, std::max<int64_t>(1, sync.delay_steps), base_steps));
  }
  if (sync.eager && (sync.fragments != 1 || sync.delay_steps != 0 || sync.alpha != 0)) {
    place.member("eager").fail(
        "an eager sync is of the whole model and lasts a whole round: sync.fragments must be 1, "
        "sync.delay_steps and sync.alpha 0");
  }
  if (sync.shares == SharesRule::kBandwidth && sync.exchange != ExchangeKind::kDirect) {
    place.member("shares").fail("only the direct exchange has shares by bandwidth");
  }
  if (sync.exchange != ExchangeKind::kRing) return;
  if (sync.codec.kind != CodecKind::kFp32) {
    place.member("codec").member("kind").fail("the ring adds up fp32 only");
  }
  if (!sync.servers.empty()) place.member("servers").fail("the ring has no servers");
}

}  // namespace

RunConfig run_config_from_json(const Json& json, const std::string& file) {
  auto run = read_json<RunConfig>(json, file);
  const JsonPlace sites{file, "sites"};
  std::set<std::string> names;
  for (std::size_t id = 0; id < run.sites.size(); ++id) {
    const auto& name = run.sites[id].name;
    if (name.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
        std::string::npos) {
      sites.element(id).member("name").fail("'" + name +
                                            "' has characters other than letters, digits, - and _");
    }
    if (!names.insert(name).second) {
      sites.element(id).member("name").fail("'" + name + "' stands twice");
    }
  }
  validate_sync(run.sync, run.plan.base_steps, file);
  const JsonPlace servers{file, "sync.servers"};
  for (std::size_t i = 0; i < run.sync.servers.size(); ++i) {
    if (!names.contains(run.sync.servers[i])) {
      servers.element(i).fail("'" + run.sync.servers[i] + "' is no site of the run");
    }
  }
  if (run.plan.wan_target && (run.sync.eager || run.sync.exchange != ExchangeKind::kDirect)) {
    JsonPlace{file, "plan.wan_target"}.fail(
        "only a direct exchange that is not eager is chosen by a target: set sync.exchange to "
        "direct and sync.eager to false");
  }
  run.deadlines.validate(file);
  return run;
}

}  // namespace farstep
