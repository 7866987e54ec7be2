#include "heterogeneity/policy/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "heterogeneity/policy/hybrid.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

namespace {

// Rounds that end by deadline have data for more steps than planned, since a site may turn out
// faster. A site that uses up this data ends its round early. Windows that it does not use are
// skipped in this epoch, so a larger room wastes more of them. The step more serves rounds of a few
// steps.
constexpr double kDeadlineRoom = 1.25;
constexpr int64_t kDeadlineStepsMore = 1;

// The input of a plan.
struct PlanFacts {
  const PlanConfig& config;
  std::span<const SiteKnowledge> sites;  // those that train
  std::span<const StepPredictor> predictors;
  std::span<const std::size_t> places;  // of these, among all sites
};

[[noreturn]] void refuse(const std::string& message) {
  JsonPath{"", "plan.policy"}.fail(message);
}

void refuse_pins(const PlanConfig& config, std::span<const SiteKnowledge> sites) {
  for (std::size_t place = 0; place < sites.size(); ++place) {
    const auto& pins = sites[place].pins;
    const char* pinned = pins.local_steps   ? "local_steps"
                         : pins.batch       ? "batch"
                         : pins.micro_batch ? "micro_batch"
                                            : nullptr;
    if (!pinned) continue;
    JsonPath{"", "sites"}.element(place).member(pinned).fail(
        fmt::format("is given, but plan.policy {} decides it; leave it out, or plan with uniform",
                    name_of(config.policy)));
  }
}

void check_memory(std::span<const SiteKnowledge> sites) {
  const auto fits_nowhere = [](const SiteKnowledge& site) {
    const auto& devices = site.profile->devices;
    return std::all_of(devices.begin(), devices.end(),
                       [](const auto& device) { return device.max_micro_batch == 0; });
  };
  if (std::all_of(sites.begin(), sites.end(),
                  [&](const SiteKnowledge& site) { return site.profile && fits_nowhere(site); })) {
    refuse("the model fits on no device of any site: take a smaller one, or shorter sequences");
  }
  for (const auto& site : sites) {
    if (!site.profile) continue;
    for (const auto& device : site.profile->devices) {
      if (device.max_micro_batch != 0) continue;
      refuse(
          fmt::format("the model does not fit on device {} of {} (max_micro_batch 0): "
                      "leave it out of the site's devices, or take a smaller model",
                      device.name, site.site));
    }
  }
}

// The policies of the paper compare datasheets or measurements, so each site must have them.
const SiteProfile& profile_of(const SiteKnowledge& site, const PlanConfig& config) {
  if (!site.profile) {
    refuse(
        fmt::format("{} needs the profile of every site, and {} has none; `farstep "
                    "profile` makes it",
                    name_of(config.policy), site.site));
  }
  return *site.profile;
}

double mean_tflops(const SiteKnowledge& site, const PlanConfig& config) {
  const auto& devices = profile_of(site, config).devices;
  double sum = 0;
  for (const auto& device : devices) {
    const auto speed = tflops(device);
    if (!speed) {
      refuse(
          fmt::format("{} needs fp16_tflops or bf16_tflops of every device, and {} of {} "
                      "has neither; `farstep profile` measures them",
                      name_of(config.policy), device.name, site.site));
    }
    sum += *speed;
  }
  return sum / static_cast<double>(devices.size());
}

// The uniform plan, which the other policies change.
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

// Sets the micro-batches: the whole batch, or the config's, but no more than a device's share and
// memory allow.
RoundPlan with_micro_batches(const PlanFacts& facts, RoundPlan plan) {
  for (std::size_t place = 0; place < facts.sites.size(); ++place) {
    auto& work = plan.sites[place];
    const auto& pin = facts.sites[place].pins.micro_batch;
    const int64_t wanted = pin ? *pin : facts.config.micro_batch.value_or(work.batch);
    if (wanted > work.batch) {
      const JsonPath path{"", pin ? "sites" : "plan"};
      (pin ? path.element(facts.places[place]) : path)
          .member("micro_batch")
          .fail(fmt::format("is {}; must be at most the batch of {}, {}", wanted, work.site,
                            work.batch));
    }
    work.micro_batch = std::min(wanted, most_micro_batch(facts.sites[place]).value_or(wanted));
    // A device with a smaller share would keep memory for sequences that it never gets.
    work.micro_batch = std::min(
        work.micro_batch, facts.predictors[place].largest_share(work.batch, work.micro_batch));
  }
  return plan;
}

// ---- the policies ----
//
// batch_by_tflops, batch_by_memory and steps_by_tflops are the policies A, B and C of Shin, Shin,
// Yoo and Yang. Tests reproduce the paper's Table 2 from its Table 1.

RoundPlan plan_alike(const PlanFacts& facts) {
  return with_micro_batches(facts, base_plan(facts.config, facts.sites));
}

// Raises the field `shared` of each site's work, called `what` in messages, in proportion to its
// TFLOPS.
RoundPlan plan_by_tflops(const PlanFacts& facts, int64_t SitePlan::*shared, const char* what) {
  auto plan = base_plan(facts.config, facts.sites);
  std::vector<double> means;
  for (const auto& site : facts.sites) {
    means.push_back(mean_tflops(site, facts.config));
  }
  // The site with the least keeps the base work, and all others get more.
  const auto least = std::min_element(means.begin(), means.end());
  for (std::size_t place = 0; place < facts.sites.size(); ++place) {
    auto& work = plan.sites[place];
    const double ratio = means[place] / *least;
    const int64_t base = work.*shared;
    // The limit keeps llround() defined; check_work() then refuses the plan.
    work.*shared = std::llround(
        std::min(static_cast<double>(base) * ratio, static_cast<double>(kMostWork + 1)));
    work.reason =
        fmt::format("{:.5g} TFLOPS a device, {:.3f} times {}'s: {} {} instead of {}", means[place],
                    ratio, facts.sites[static_cast<std::size_t>(least - means.begin())].site, what,
                    work.*shared, base);
  }
  return with_micro_batches(facts, std::move(plan));
}

RoundPlan plan_batch_by_tflops(const PlanFacts& facts) {
  return plan_by_tflops(facts, &SitePlan::batch, "batch");
}

RoundPlan plan_steps_by_tflops(const PlanFacts& facts) {
  return plan_by_tflops(facts, &SitePlan::local_steps, "steps");
}

RoundPlan plan_batch_by_memory(const PlanFacts& facts) {
  auto plan = base_plan(facts.config, facts.sites);
  for (std::size_t place = 0; place < facts.sites.size(); ++place) {
    const auto& site = facts.sites[place];
    for (const auto& device : profile_of(site, facts.config).devices) {
      if (device.max_micro_batch) continue;
      refuse(
          fmt::format("batch_by_memory needs max_micro_batch of every device, and {} of "
                      "{} has none; `farstep profile` measures it",
                      device.name, site.site));
    }
    // By the smallest device: all devices of a site get micro-batches of one size.
    const int64_t most = *most_micro_batch(site);
    auto& work = plan.sites[place];
    while (work.batch <= most / 2) work.batch *= 2;
    work.reason =
        work.batch <= most
            ? fmt::format("each device holds {} sequences: batch {}", most, work.batch)
            : fmt::format("a device holds {} sequences: batch {} is accumulated", most, work.batch);
  }
  return with_micro_batches(facts, std::move(plan));
}

RoundPlan plan_hybrid(const PlanFacts& facts) {
  plan_alike(facts);  // throws if the base work is impossible
  return hybrid_work(facts.config, facts.sites, facts.predictors);
}

void predict_work(const PlanConfig&, std::span<const SiteKnowledge> sites,
                  std::span<const StepPredictor> predictors, RoundPlan& plan) {
  std::vector<double> overheads;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    auto& work = plan.sites[place];
    work.step_seconds = predictors[place].seconds(work.batch, work.micro_batch);
    overheads.push_back(sites[place].overhead_seconds);
  }
  predict_round(plan, overheads);
}

// One policy's functions and properties.
struct PolicyRow {
  Policy policy;
  // Returns each site's work; may throw ConfigError.
  RoundPlan (*plan)(const PlanFacts& facts);
  // Fills in the plan's predictions, and the reasons if the predictions determine the work.
  void (*explain)(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                  std::span<const StepPredictor> predictors, RoundPlan& plan);
  bool takes_pins;  // the run file may set a site's work
  bool learns;
};

constexpr std::array kPolicies{
    PolicyRow{Policy::kUniform, plan_alike, predict_work, true, false},
    PolicyRow{Policy::kBatchByTflops, plan_batch_by_tflops, predict_work, false, false},
    PolicyRow{Policy::kBatchByMemory, plan_batch_by_memory, predict_work, false, false},
    PolicyRow{Policy::kStepsByTflops, plan_steps_by_tflops, predict_work, false, false},
    PolicyRow{Policy::kHybrid, plan_hybrid, explain_hybrid, false, true},
};

const PolicyRow& row_of(Policy policy) {
  const auto row = std::ranges::find(kPolicies, policy, &PolicyRow::policy);
  FARSTEP_CHECK(row != kPolicies.end(), "policy {} has no row", name_of(policy));
  return *row;
}

void check_work(const RoundPlan& plan) {
  for (const auto& work : plan.sites) {
    if (std::max(work.local_steps, work.batch) <= kMostWork) continue;
    refuse(
        fmt::format("{} would get {} steps of {}, more than {}: check the base work, and "
                    "the sites' profiles for figures that are far from each other",
                    work.site, work.local_steps, work.batch, kMostWork));
  }
}

// The sites for which a policy plans. Those that serve alone have no speed to compare.
class TrainingSites {
 public:
  TrainingSites(std::span<const SiteKnowledge> sites, std::span<const StepPredictor> predictors)
      : sites_(sites), predictors_(predictors) {
    for (std::size_t place = 0; place < sites.size(); ++place) {
      if (sites[place].trains) places_.push_back(place);
    }
    if (places_.size() == sites.size()) return;
    // A copy only where some do not train: a simulation may have thousands of sites.
    for (const auto place : places_) {
      own_sites_.push_back(sites[place]);
      own_predictors_.push_back(predictors[place]);
    }
    sites_ = own_sites_;
    predictors_ = own_predictors_;
  }
  TrainingSites(const TrainingSites&) = delete;

  std::span<const SiteKnowledge> sites() const { return sites_; }
  std::span<const StepPredictor> predictors() const { return predictors_; }
  std::span<const std::size_t> places() const { return places_; }

 private:
  std::span<const SiteKnowledge> sites_;
  std::span<const StepPredictor> predictors_;
  std::vector<std::size_t> places_;
  std::vector<SiteKnowledge> own_sites_;
  std::vector<StepPredictor> own_predictors_;
};

// Returns the work of sites that serve alone: every step, without a batch.
std::vector<SitePlan> servers_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites) {
  std::vector<SitePlan> works;
  for (const auto& site : sites) {
    auto& work = works.emplace_back();
    work.site = site.site;
    work.local_steps = config.base_steps;
    work.reason = fmt::format("serves alone: adds up the gradients of {} steps", work.local_steps);
  }
  return works;
}

}  // namespace

std::vector<SiteKnowledge> sites_of(std::span<const RunSite> sites) {
  std::vector<SiteKnowledge> all;
  for (const auto& site : sites) {
    SiteKnowledge known;
    known.site = site.name;
    known.trains = site.trains;
    known.pins = {site.local_steps, site.batch, site.micro_batch};
    all.push_back(std::move(known));
  }
  return all;
}

RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites) {
  return make_plan(config, sites, predictors_of(sites));
}

RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors) {
  const auto& policy = row_of(config.policy);
  if (!policy.takes_pins) refuse_pins(config, sites);
  const TrainingSites training_sites(sites, predictors);
  FARSTEP_CHECK(!training_sites.sites().empty(), "a plan for no site that trains");
  // Before any work is computed: a plan for a device that cannot hold the model would fail hours
  // later.
  check_memory(training_sites.sites());
  auto plan = policy.plan({.config = config,
                           .sites = training_sites.sites(),
                           .predictors = training_sites.predictors(),
                           .places = training_sites.places()});
  check_work(plan);
  if (std::ssize(training_sites.places()) < std::ssize(sites)) {
    auto works = std::exchange(plan.sites, servers_plan(config, sites));
    for (std::size_t i = 0; i < works.size(); ++i) {
      plan.sites[training_sites.places()[i]] = std::move(works[i]);
    }
  }
  for (auto& work : plan.sites) {
    const double room = std::ceil(kDeadlineRoom * static_cast<double>(work.local_steps));
    work.most_steps = config.round_end == RoundEnd::kDeadline
                          ? static_cast<int64_t>(room) + kDeadlineStepsMore
                          : work.local_steps;
  }
  return predicted_anew(config, sites, predictors, std::move(plan));
}

// Work and reasons of a plan come from different moments: a plan that stays is explained by what is
// known now.
RoundPlan predicted_anew(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                         std::span<const StepPredictor> predictors, RoundPlan plan) {
  const TrainingSites training_sites(sites, predictors);
  RoundPlan training;
  for (const auto place : training_sites.places()) training.sites.push_back(plan.sites[place]);
  row_of(config.policy)
      .explain(config, training_sites.sites(), training_sites.predictors(), training);
  for (std::size_t i = 0; i < training.sites.size(); ++i) {
    plan.sites[training_sites.places()[i]] = std::move(training.sites[i]);
  }
  plan.round_seconds = training.round_seconds;
  return plan;
}

bool learns(Policy policy) {
  return row_of(policy).learns;
}

}  // namespace farstep::heterogeneity
