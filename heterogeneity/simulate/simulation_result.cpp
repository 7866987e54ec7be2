#include "heterogeneity/simulate/simulation_result.h"

#include <algorithm>

#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

// Per round of the run, also for sites that joined later, so that the sites' figures add up.
double a_round(const SimulationResult& result, double seconds) {
  return seconds / static_cast<double>(std::max<int64_t>(result.rounds, 1));
}

// One line of the table; `steps` and `batch` are of the last round.
std::string row_text(const SimulationResult& result, std::string_view name, std::size_t name_width,
                     std::string_view steps, std::string_view batch, const TimeUse& time,
                     double hidden_wan_seconds) {
  return fmt::format("{:<{}}  {:>6}  {:>6}  {:>11.2f}  {:>8.2f}  {:>7.2f}  {:>10.2f}  {:>8.1f}\n",
                     name, name_width, steps, batch, a_round(result, time.compute_seconds),
                     a_round(result, time.seconds(SpanCause::kWait)),
                     a_round(result, time.seconds(SpanCause::kWan)),
                     a_round(result, hidden_wan_seconds), 100 * (1 - time.idle_fraction()));
}

}  // namespace

SimulationResult::SimulationResult(const Scenario& scenario)
    : sequence_length(scenario.sequence_length.value_or(1)) {
  // All sites from the start, so that a site's id is its index.
  for (const auto& site : scenario.sites) sites.push_back({.site = site.name, .time = {}});
}

void SimulationResult::add(const SimulatedRound& round) {
  ++rounds;
  TimeUse all;
  for (const auto& simulated : round.sites) {
    auto& site = sites[simulated.site];
    const auto time = simulated.time();
    ++site.rounds;
    site.last_steps = simulated.steps();
    site.last_batch = simulated.plan.batch;
    site.tokens += simulated.steps() * simulated.plan.batch * sequence_length;
    site.time += time;
    for (const auto& sync : simulated.syncs) {
      if (!simulated.plan.trains()) continue;
      site.hidden_wan_seconds += sync.all.wan() - sync.exposed.wan();
    }
    all += time;
  }
  const double total = all.total_seconds();
  // Waiting alone: the share that a plan can change. Exposed transfers are a figure of their own.
  idle_fractions.push_back(total > 0 ? all.seconds(SpanCause::kWait) / total : 0);
}

double SimulationResult::idle_seconds(const SimulatedSite& site) const {
  return a_round(*this, site.time.seconds(SpanCause::kWait));
}

// A site that joined later was not there for the whole of it.
double SimulationResult::run_seconds() const {
  double longest = 0;
  for (const auto& site : sites) longest = std::max(longest, site.time.total_seconds());
  return longest;
}

double SimulationResult::tokens_per_second() const {
  int64_t tokens = 0;
  for (const auto& site : sites) tokens += site.tokens;
  const double seconds = run_seconds();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double SimulationResult::total_idle_seconds() const {
  double total = 0;
  for (const auto& site : sites) total += idle_seconds(site);
  return total;
}

Json simulation_json(const SimulationResult& result) {
  Json sites = Json::array();
  for (const auto& site : result.sites) {
    sites.push_back({{"site", site.site},
                     {"compute_seconds", a_round(result, site.time.compute_seconds)},
                     {"idle_seconds", result.idle_seconds(site)},
                     {"wan_seconds", a_round(result, site.time.seconds(SpanCause::kWan))},
                     {"serve_seconds", a_round(result, site.time.serve_seconds())},
                     {"hidden_wan_seconds", a_round(result, site.hidden_wan_seconds)},
                     {"tokens", site.tokens}});
  }
  Json json;
  json["rounds"] = result.rounds;
  json["sites"] = std::move(sites);
  json["total_idle_seconds"] = result.total_idle_seconds();
  json["run_seconds"] = result.run_seconds();
  json["tokens_per_second"] = result.tokens_per_second();
  return json;
}

std::string simulation_text(const Scenario& scenario, const SimulationResult& result) {
  // A table of a thousand sites and a hundred rounds would hide its point. Of many rounds it has
  // the first six, in which the plan changes most, and the last.
  constexpr std::size_t kMostSites = 40, kMostRounds = 40, kFirstRounds = 6, kRoundsALine = 7;
  std::size_t width = 5;
  for (const auto& site : scenario.sites) width = std::max(width, site.name.size());
  auto text = fmt::format("{}, {}: means of {} rounds, steps and batch of the last\n\n",
                          scenario.name, name_of(scenario.plan.policy), result.rounds);
  text +=
      fmt::format("{:<{}}  {:>6}  {:>6}  {:>11}  {:>8}  {:>7}  {:>10}  {:>8}\n", "site", width,
                  "steps", "batch", "compute (s)", "idle (s)", "WAN (s)", "hidden (s)", "busy (%)");
  TimeUse all;
  double all_hidden_seconds = 0;
  for (std::size_t id = 0; id < result.sites.size(); ++id) {
    const auto& site = result.sites[id];
    all += site.time;
    all_hidden_seconds += site.hidden_wan_seconds;
    if (id >= kMostSites) continue;
    text += row_text(result, site.site, width, std::to_string(site.last_steps),
                     std::to_string(site.last_batch), site.time, site.hidden_wan_seconds);
  }
  if (result.sites.size() > kMostSites) {
    text += fmt::format("... and {} more\n", result.sites.size() - kMostSites);
  }
  text += row_text(result, "total", width, "", "", all, all_hidden_seconds);
  text += fmt::format("\n{} tokens a second in rounds of {}\n",
                      short_count_text(result.tokens_per_second()),
                      duration_text(a_round(result, result.run_seconds())));
  text += "\nWaiting for peers, share of all time, by round";
  const auto rounds = result.idle_fractions.size();
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (rounds > kMostRounds && round > kFirstRounds && round < rounds) continue;
    text += (round % kRoundsALine == 1 ? "\n" : "  ") +
            fmt::format("{:>3}: {:4.1f} %", round, 100 * result.idle_fractions[round - 1]);
  }
  return text + "\n";
}

}  // namespace farstep::heterogeneity
