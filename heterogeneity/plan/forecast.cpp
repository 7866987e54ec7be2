// All figures follow from the plan, the step times and the links. The run without a site is a plan
// of its own, as the others would then take other steps.
#include "heterogeneity/plan/forecast.h"

#include <fmt/format.h>

#include <algorithm>

#include "heterogeneity/plan/sync_plan.h"
#include "heterogeneity/policy/policy.h"
#include "heterogeneity/policy/round_bound.h"
#include "outer_optimizer/codec/make_codec.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

constexpr std::size_t kMostPlansWithout = 16;
// A site with less of an equal share of the tokens gets a warning: the run hardly needs it.
constexpr double kLittleShare = 0.15;

double tokens_of(const ForecastSettings& settings, const SitePlan& work) {
  return static_cast<double>(work.trains() ? work.local_steps * work.batch : 0) *
         static_cast<double>(settings.sequence_length.value_or(1));
}

// Returns how long a round is held up by its exchange; nullopt if the links are not known. Sites
// that step together exchange in every step, which no profile tells the time of.
std::optional<double> exposed_seconds(const ForecastSettings& settings,
                                      std::span<const SiteKnowledge> sites) {
  if (settings.plan.equal_steps || !settings.parameters) return std::nullopt;
  std::vector<SiteKnowledge> training(sites.begin(), sites.end());
  std::erase_if(training, [](const auto& site) { return !site.trains; });
  if (training.size() < sites.size()) return std::nullopt;
  const auto facts = sync_facts(sites, settings.plan, *settings.parameters);
  if (!facts) return std::nullopt;
  return sync_by(*facts, settings.sync).exposed_seconds;
}

// Sets the figures of the whole run, and of each site's own part in it.
void add_speeds(const ForecastSettings& settings, std::span<const SiteKnowledge> sites,
                const RoundPlan& plan, Forecast& forecast) {
  double tokens = 0;
  for (const auto& site : forecast.sites) tokens += tokens_of(settings, site.work);
  forecast.tokens_a_round = static_cast<int64_t>(tokens);
  forecast.train_seconds = plan.round_seconds;
  forecast.exposed_seconds = exposed_seconds(settings, sites);
  if (plan.round_seconds) {
    forecast.round_seconds = *plan.round_seconds + forecast.exposed_seconds.value_or(0);
    forecast.tokens_per_second = tokens / *forecast.round_seconds;
  }
  for (std::size_t place = 0; place < forecast.sites.size(); ++place) {
    auto& site = forecast.sites[place];
    const double own_tokens = tokens_of(settings, site.work);
    site.token_share = own_tokens / tokens;
    if (forecast.round_seconds) site.tokens_per_second = own_tokens / *forecast.round_seconds;
    if (!site.work.compute_seconds) continue;
    site.alone_per_second = own_tokens / *site.work.compute_seconds;
    const auto& fastest = forecast.fastest;
    if (!fastest || site.alone_per_second > forecast.sites[*fastest].alone_per_second) {
      forecast.fastest = place;
    }
  }
}

void add_runs_without(const ForecastSettings& settings, std::span<const SiteKnowledge> sites,
                      Forecast& forecast) {
  const auto training = std::ranges::count_if(sites, &SiteKnowledge::trains);
  if (!forecast.tokens_per_second || training < 2 || sites.size() > kMostPlansWithout) return;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    if (!sites[place].trains) continue;
    std::vector<SiteKnowledge> others(sites.begin(), sites.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
    const auto plan = make_plan(settings.plan, others);
    if (!plan.round_seconds) continue;
    double tokens = 0;
    for (const auto& work : plan.sites) tokens += tokens_of(settings, work);
    const double seconds = *plan.round_seconds + exposed_seconds(settings, others).value_or(0);
    forecast.sites[place].without = RunWithout{
        .speed_share = tokens / seconds / *forecast.tokens_per_second, .round_seconds = seconds};
  }
}

// Each site adds up an equal part of the model: it gets that part of every other site's delta, and
// sends the mean of its own part to each.
void add_link_bytes(const ForecastSettings& settings, Forecast& forecast) {
  const auto& sync = settings.sync;
  if (!settings.parameters || settings.plan.equal_steps || forecast.sites.size() < 2 ||
      sync.exchange != outer_optimizer::ExchangeKind::kDirect) {
    return;
  }
  const auto encoded = outer_optimizer::make_codec(sync.codec)->encoded_bytes(*settings.parameters);
  forecast.link_bytes_a_round = 2 * encoded / std::ssize(forecast.sites);
}

void add_warnings(Forecast& forecast) {
  const auto training =
      std::ranges::count_if(forecast.sites, [](const auto& site) { return site.work.trains(); });
  for (const auto& site : forecast.sites) {
    if (!site.work.trains()) continue;
    if (site.token_share * static_cast<double>(training) < kLittleShare) {
      auto text =
          fmt::format("{} trains {} of the tokens", site.work.site, percent_text(site.token_share));
      if (site.without) {
        text += fmt::format("; without it the run has {} of this speed, in rounds of {}",
                            percent_text(site.without->speed_share),
                            duration_text(site.without->round_seconds));
      }
      forecast.warnings.push_back(text + ": better leave it out");
    }
  }
  const auto most = std::ranges::max_element(
      forecast.sites, {}, [](const auto& site) { return site.work.local_steps; });
  if (most->work.local_steps > kMostStudiedSteps) {
    forecast.warnings.push_back(fmt::format(
        "{} takes {} steps in a round; the loss by local steps is known up to {} (DiLoCo, arXiv "
        "2311.08105: 2.9 % of perplexity more than with 50), and a guess beyond",
        most->work.site, count_text(most->work.local_steps), count_text(kMostStudiedSteps)));
  }
}

}  // namespace

std::vector<double> averaging_weights(outer_optimizer::AveragingRule rule, const RoundPlan& plan) {
  std::vector<outer_optimizer::Work> works;
  for (const auto& site : plan.sites) {
    // A sequence counts as one token: the coefficients depend on ratios only.
    const int64_t steps = site.trains() ? site.local_steps : 0;
    works.push_back({.steps = steps,
                     .batch = site.batch,
                     .tokens = steps * site.batch,
                     .missing_steps = site.left_out_steps});
  }
  return averaging_coefficients(rule, works);
}

Forecast forecast_of(const ForecastSettings& settings, std::span<const SiteKnowledge> sites,
                     const RoundPlan& plan) {
  Forecast forecast;
  forecast.policy = settings.plan.policy;
  forecast.counts_examples = !settings.sequence_length;
  const auto weights = averaging_weights(settings.averaging, plan);
  for (std::size_t place = 0; place < plan.sites.size(); ++place) {
    auto& site = forecast.sites.emplace_back();
    site.work = plan.sites[place];
    site.averaging_weight = weights[place];
  }
  forecast.total_idle_seconds = total_idle_seconds(plan);
  add_speeds(settings, sites, plan, forecast);
  add_runs_without(settings, sites, forecast);
  add_link_bytes(settings, forecast);
  add_warnings(forecast);
  return forecast;
}

}  // namespace farstep::heterogeneity
