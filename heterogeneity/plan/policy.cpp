#include "heterogeneity/plan/policy.h"

#include <algorithm>
#include <cmath>

#include "heterogeneity/plan/hybrid.h"
#include "trainer/config/json_fields.h"

namespace farstep {

namespace {

// Room for steps of a round by deadline beyond those planned: a site may turn out faster.
constexpr double kDeadlineRoom = 1.25;
constexpr int64_t kDeadlineStepsMore = 1;

[[noreturn]] void refuse(const std::string& source, const std::string& message) {
  JsonPlace{source, "plan.policy"}.fail(message);
}

void check_pins(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                const std::string& source) {
  if (config.policy == Policy::kUniform) return;
  for (std::size_t id = 0; id < sites.size(); ++id) {
    const auto& pins = sites[id].pins;
    const char* pinned = pins.local_steps   ? "local_steps"
                         : pins.batch       ? "batch"
                         : pins.micro_batch ? "micro_batch"
                                            : nullptr;
    if (!pinned) continue;
    JsonPlace{source, "sites"}.element(id).member(pinned).fail(
        fmt::format("is given, but plan.policy {} decides it; leave it out, or plan with uniform",
                    name_of(config.policy)));
  }
}

void check_memory(std::span<const SiteKnowledge> sites, const std::string& source) {
  const auto fits_nowhere = [](const SiteKnowledge& site) {
    const auto& devices = site.profile->devices;
    return std::all_of(devices.begin(), devices.end(),
                       [](const auto& device) { return device.max_micro_batch == 0; });
  };
  if (std::all_of(sites.begin(), sites.end(),
                  [&](const SiteKnowledge& site) { return site.profile && fits_nowhere(site); })) {
    refuse(source,
           "the model fits on no device of any site: take a smaller one, or shorter sequences");
  }
  for (const auto& site : sites) {
    if (!site.profile) continue;
    for (const auto& device : site.profile->devices) {
      if (device.max_micro_batch != 0) continue;
      refuse(source, fmt::format("the model does not fit on device {} of {} (max_micro_batch 0): "
                                 "leave it out of the site's devices, or take a smaller model",
                                 device.name, site.site));
    }
  }
}

const SiteProfile& profile_of(const SiteKnowledge& site, const PlanConfig& config,
                              const std::string& source) {
  if (!site.profile) {
    refuse(source, fmt::format("{} needs the profile of every site, and {} has none; `farstep "
                               "profile` makes it",
                               name_of(config.policy), site.site));
  }
  return *site.profile;
}

double mean_tflops(const SiteKnowledge& site, const PlanConfig& config, const std::string& source) {
  const auto& devices = profile_of(site, config, source).devices;
  double sum = 0;
  for (const auto& device : devices) {
    const auto speed = tflops(device);
    if (!speed) {
      refuse(source,
             fmt::format("{} needs fp16_tflops or bf16_tflops of every device, and {} of {} "
                         "has neither; `farstep profile` measures them",
                         name_of(config.policy), device.name, site.site));
    }
    sum += *speed;
  }
  return sum / static_cast<double>(devices.size());
}

// Uniform, and what the other policies change.
RoundPlan base_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites) {
  RoundPlan plan;
  for (const auto& site : sites) {
    auto& work = plan.sites.emplace_back();
    work.site = site.site;
    work.local_steps = site.pins.local_steps.value_or(config.base_steps);
    work.batch = site.pins.batch.value_or(config.base_batch);
    const bool pinned = site.pins.local_steps || site.pins.batch || site.pins.micro_batch;
    work.reason = fmt::format("{}: {} steps of {}", pinned ? "as the run file has it" : "all alike",
                              work.local_steps, work.batch);
  }
  return plan;
}

void share_by_tflops(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                     const std::string& source, RoundPlan& plan) {
  std::vector<double> means;
  for (const auto& site : sites) means.push_back(mean_tflops(site, config, source));
  const auto least = std::min_element(means.begin(), means.end());
  const bool by_batch = config.policy == Policy::kBatchByTflops;
  for (std::size_t id = 0; id < sites.size(); ++id) {
    auto& work = plan.sites[id];
    const double ratio = means[id] / *least;
    auto& shared = by_batch ? work.batch : work.local_steps;
    const int64_t base = shared;
    shared = std::llround(
        std::min(static_cast<double>(base) * ratio, static_cast<double>(kMostWork + 1)));
    work.reason =
        fmt::format("{:.5g} TFLOPS a device, {:.3f} times {}'s: {} {} instead of {}", means[id],
                    ratio, sites[static_cast<std::size_t>(least - means.begin())].site,
                    by_batch ? "batch" : "steps", shared, base);
  }
}

void batch_by_memory(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                     const std::string& source, RoundPlan& plan) {
  for (std::size_t id = 0; id < sites.size(); ++id) {
    for (const auto& device : profile_of(sites[id], config, source).devices) {
      if (device.max_micro_batch) continue;
      refuse(source, fmt::format("batch_by_memory needs max_micro_batch of every device, and {} of "
                                 "{} has none; `farstep profile` measures it",
                                 device.name, sites[id].site));
    }
    const int64_t most = *most_micro_batch(sites[id]);
    auto& work = plan.sites[id];
    while (work.batch <= most / 2) work.batch *= 2;
    work.reason =
        work.batch <= most
            ? fmt::format("each device holds {} sequences: batch {}", most, work.batch)
            : fmt::format("a device holds {} sequences: batch {} is accumulated", most, work.batch);
  }
}

// All of the batch at once, or as the config has it, but no more than a device gets and holds.
void choose_micro_batches(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                          std::span<const StepPredictor> predictors, const std::string& source,
                          RoundPlan& plan) {
  for (std::size_t id = 0; id < sites.size(); ++id) {
    auto& work = plan.sites[id];
    const auto& pin = sites[id].pins.micro_batch;
    const int64_t wanted = pin ? *pin : config.micro_batch.value_or(work.batch);
    if (wanted > work.batch) {
      const JsonPlace place{source, pin ? "sites" : "plan"};
      (pin ? place.element(id) : place)
          .member("micro_batch")
          .fail(fmt::format("is {}; must be at most the batch of {}, {}", wanted, work.site,
                            work.batch));
    }
    work.micro_batch = std::min(wanted, most_micro_batch(sites[id]).value_or(wanted));
    work.micro_batch =
        std::min(work.micro_batch, predictors[id].largest_share(work.batch, work.micro_batch));
  }
}

void check_work(const RoundPlan& plan, const std::string& source) {
  for (const auto& work : plan.sites) {
    if (std::max(work.local_steps, work.batch) <= kMostWork) continue;
    refuse(source,
           fmt::format("{} would get {} steps of {}, more than {}: check the base work, and "
                       "the sites' profiles for figures that are far from each other",
                       work.site, work.local_steps, work.batch, kMostWork));
  }
}

}  // namespace

RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    const std::string& source) {
  return make_plan(config, sites, predictors_of(sites), source);
}

RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors, const std::string& source) {
  FARSTEP_CHECK(!sites.empty(), "a plan for no site");
  check_pins(config, sites, source);
  check_memory(sites, source);
  auto plan = base_plan(config, sites);
  if (config.policy == Policy::kBatchByTflops || config.policy == Policy::kStepsByTflops) {
    share_by_tflops(config, sites, source, plan);
  } else if (config.policy == Policy::kBatchByMemory) {
    batch_by_memory(config, sites, source, plan);
  }
  choose_micro_batches(config, sites, predictors, source, plan);
  if (config.policy == Policy::kHybrid) plan = hybrid_work(config, sites, predictors, source);
  check_work(plan, source);
  for (auto& work : plan.sites) {
    const double room = std::ceil(kDeadlineRoom * static_cast<double>(work.local_steps));
    work.most_steps = config.round_end == RoundEnd::kDeadline
                          ? static_cast<int64_t>(room) + kDeadlineStepsMore
                          : work.local_steps;
  }
  return predicted_anew(config, sites, predictors, std::move(plan));
}

RoundPlan predicted_anew(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                         std::span<const StepPredictor> predictors, RoundPlan plan) {
  if (config.policy == Policy::kHybrid) {
    explain_hybrid(config, sites, predictors, plan);
    return plan;
  }
  std::vector<double> overheads;
  for (std::size_t id = 0; id < sites.size(); ++id) {
    auto& work = plan.sites[id];
    work.step_seconds = predictors[id].seconds(work.batch, work.micro_batch);
    overheads.push_back(sites[id].overhead_seconds);
  }
  predict_round(plan, overheads);
  return plan;
}

}  // namespace farstep
