// The batch decides how fast a site trains, the steps only when it is ready for the sync. So each
// site first gets the batch with most tokens a second, then as many steps of it as the round has
// time for.
#include "heterogeneity/policy/hybrid.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "heterogeneity/policy/round_bound.h"
#include "heterogeneity/policy/round_length.h"
#include "trainer/config/json_fields.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

// A larger batch must raise the tokens a second by this factor. Predictions of profiled batches are
// off by -2.4 to +5.4 % (docs/results/planning.md), so smaller gains are within their errors.
constexpr double kWorthwhileGain = 1.02;
// Times that differ by less count as equal.
constexpr double kTimeRounding = 1e-9;

// The source of a site's step time.
enum class Source { kRun, kProfile, kTflops, kTflopsAlone, kNothing };

struct Speed {
  Source source = Source::kNothing;
  double step_seconds = 0;  // kTflopsAlone: relative to the slowest such site
};

struct Load {
  int64_t batch = 0, micro_batch = 0;
};

// Returns the least batch of every site: base_batch, if the critical batch allows it.
int64_t start_batch(const PlanConfig& config, int64_t most_batch) {
  return std::min(config.base_batch, most_batch);
}

// An outer step averages the sites' steps, so together the sites must stay within the critical
// batch. Beyond it more sequences in a step hardly help.
int64_t most_batch(const PlanConfig& config, std::size_t num_sites) {
  if (!config.critical_batch) return config.base_batch;
  return std::max<int64_t>(1, *config.critical_batch / static_cast<int64_t>(num_sites));
}

// Returns the micro-batches to choose from, largest first: the measured ones, powers of two, and
// the largest that fits, if that is known.
std::vector<int64_t> micro_batches_to_try(const PlanConfig& config, const SiteKnowledge& site,
                                          int64_t start) {
  auto most = most_micro_batch(site);
  if (config.micro_batch) {
    return {std::min(*config.micro_batch, most.value_or(*config.micro_batch))};
  }
  std::vector<int64_t> tried{1};
  if (site.profile) {
    for (const auto& device : site.profile->devices) {
      for (const auto& step : device.step_seconds) tried.push_back(step.micro_batch);
    }
  }
  if (!most) {  // measured micro-batches fit, and so does the run file's
    most = std::max(start, *std::max_element(tried.begin(), tried.end()));
  }
  for (int64_t power = 1; power <= *most / 2;) tried.push_back(power *= 2);
  tried.push_back(*most);
  std::erase_if(tried, [&](int64_t micro_batch) { return micro_batch > *most; });
  // fastest_load() takes the first of equally fast ones, which must be the largest.
  std::sort(tried.begin(), tried.end(), std::greater<>());
  tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
  return tried;
}

// Returns the fastest micro-batch for the batch; of equally fast ones the largest.
Load fastest_load(const StepPredictor& predictor, const std::vector<int64_t>& tried,
                  int64_t batch) {
  Load best;
  double best_seconds = 0;
  for (const auto most : tried) {
    const int64_t micro_batch = std::min(most, batch);
    // Equal passes: the same number of passes without a small last one, in no more memory or time.
    const int64_t share = predictor.largest_share(batch, micro_batch);
    const int64_t passes = (share + micro_batch - 1) / micro_batch;
    const Load load{batch, (share + passes - 1) / passes};
    // Without times all loads look alike. The largest, which is tried first, stays.
    const double seconds = predictor.seconds(load.batch, load.micro_batch).value_or(1);
    if (best.batch > 0 && seconds >= best_seconds * (1 - kTimeRounding)) continue;
    best = load;
    best_seconds = seconds;
  }
  return best;
}

// Doubling keeps the number of trials small. A site without fits keeps the base batch, because
// nothing compares larger ones with it.
Load choose_load(const PlanConfig& config, const SiteKnowledge& site,
                 const StepPredictor& predictor, int64_t most) {
  const int64_t start = start_batch(config, most);
  const auto tried = micro_batches_to_try(config, site, start);
  Load chosen = fastest_load(predictor, tried, start);
  if (!predictor.has_fits()) return chosen;
  const auto sequences_a_second = [&](const Load& load) {
    return static_cast<double>(load.batch) / *predictor.seconds(load.batch, load.micro_batch);
  };
  // Goes on after a size that gains nothing: the next one may fill the devices better.
  for (int64_t batch = start; batch <= most / 2;) {
    batch *= 2;
    const Load larger = fastest_load(predictor, tried, batch);
    if (sequences_a_second(larger) > kWorthwhileGain * sequences_a_second(chosen)) chosen = larger;
  }
  return chosen;
}

[[noreturn]] void refuse_unknown_speeds() {
  JsonPath{"", "plan.policy"}.fail(
      "hybrid needs to know of at least one site how fast it is: a step time, or the TFLOPS of its "
      "devices; `farstep profile` measures both");
}

// Returns the time of a site's step; nullopt if it is unknown. The predictor promises no gain by
// batches below all that were measured. Sites that step together must divide a batch all the same:
// the time counts as proportional there, and the next rounds correct it.
std::optional<double> seconds_of(const PlanConfig& config, const StepPredictor& predictor,
                                 const Load& load) {
  const auto seconds = predictor.seconds(load.batch, load.micro_batch);
  if (!seconds || !config.equal_steps) return seconds;
  const auto least = predictor.least_timed_batch();
  return *seconds * std::min(1.0, static_cast<double>(load.batch) / static_cast<double>(least));
}

// Returns the time of each site's step in the plan. A site without step times is compared by its
// TFLOPS with those that have both.
std::vector<Speed> speeds_of(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                             std::span<const StepPredictor> predictors, const RoundPlan& plan) {
  std::vector<Speed> speeds(sites.size());
  std::vector<std::optional<double>> tflops(sites.size());
  double seconds_sum = 0;  // of one sequence at one TFLOPS
  int64_t num_compared = 0;
  bool any_timed = false;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    const auto& work = plan.sites[place];
    tflops[place] = total_tflops(sites[place]);
    const auto seconds = seconds_of(config, predictors[place], {work.batch, work.micro_batch});
    if (!seconds) continue;
    any_timed = true;
    speeds[place] = {sites[place].seen ? Source::kRun : Source::kProfile, *seconds};
    if (!tflops[place]) continue;
    seconds_sum += *seconds * *tflops[place] / static_cast<double>(work.batch);
    ++num_compared;
  }
  // No site has both figures, so nothing says how many seconds a TFLOPS is worth.
  if (any_timed && num_compared == 0) return speeds;
  const double seconds_each = any_timed ? seconds_sum / static_cast<double>(num_compared) : 1;
  double slowest = 0;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    if (speeds[place].source != Source::kNothing || !tflops[place]) continue;
    speeds[place] = {any_timed ? Source::kTflops : Source::kTflopsAlone,
                     seconds_each * static_cast<double>(plan.sites[place].batch) / *tflops[place]};
    slowest = std::max(slowest, speeds[place].step_seconds);
  }
  for (auto& speed : speeds) {
    // No site is timed, so only ratios are known. The slowest site's step becomes the unit.
    if (speed.source == Source::kTflopsAlone) speed.step_seconds /= slowest;
  }
  return speeds;
}

// Divides the sequences of a step that all sites take together. Each sequence goes to the site that
// has then the shortest step. Every site has one, as a site without work has no gradient.
RoundPlan equal_steps_work(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                           std::span<const StepPredictor> predictors) {
  RoundPlan plan;
  std::vector<std::vector<int64_t>> tried;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    tried.push_back(micro_batches_to_try(config, sites[place], config.base_batch));
    const auto load = fastest_load(predictors[place], tried[place], config.base_batch);
    auto& work = plan.sites.emplace_back();
    work.site = sites[place].site;
    work.local_steps = config.base_steps;
    work.batch = load.batch;
    work.micro_batch = load.micro_batch;
  }
  const auto speeds = speeds_of(config, sites, predictors, plan);
  const auto is_unknown = [](const Speed& speed) { return speed.source == Source::kNothing; };
  if (std::ranges::all_of(speeds, is_unknown)) refuse_unknown_speeds();
  struct Next {
    double seconds = 0;  // of the step with one sequence more
    std::size_t place = 0;
    // The first to leave the queue has the shortest step; of equal ones the first site.
    bool operator<(const Next& other) const {
      return seconds != other.seconds ? seconds > other.seconds : place > other.place;
    }
  };
  std::priority_queue<Next> queue;
  std::vector<Load> loads(sites.size());
  int64_t left = config.base_batch * std::ssize(sites);
  const auto add_one = [&](std::size_t place) {
    loads[place] = fastest_load(predictors[place], tried[place], loads[place].batch + 1);
    const auto more = fastest_load(predictors[place], tried[place], loads[place].batch + 1);
    // From TFLOPS alone the time is proportional to the batch.
    const double by_tflops = speeds[place].step_seconds * static_cast<double>(more.batch) /
                             static_cast<double>(config.base_batch);
    const auto seconds = seconds_of(config, predictors[place], more);
    queue.push({seconds.value_or(by_tflops), place});
    --left;
  };
  for (std::size_t place = 0; place < sites.size(); ++place) {
    if (!is_unknown(speeds[place])) {
      add_one(place);
    } else {
      loads[place] = {plan.sites[place].batch, plan.sites[place].micro_batch};
      left -= loads[place].batch;
    }
  }
  while (left > 0) {
    const auto next = queue.top();
    queue.pop();
    add_one(next.place);
  }
  for (std::size_t place = 0; place < sites.size(); ++place) {
    plan.sites[place].batch = loads[place].batch;
    plan.sites[place].micro_batch = loads[place].micro_batch;
  }
  return plan;
}

// Returns "its TFLOPS, 1.45 times node1's" for each site with TFLOPS, relative to the slowest.
std::vector<std::string> compared_tflops(std::span<const SiteKnowledge> sites) {
  std::vector<std::optional<double>> tflops;
  std::size_t least = sites.size();
  for (std::size_t place = 0; place < sites.size(); ++place) {
    tflops.push_back(total_tflops(sites[place]));
    if (tflops[place] && (least == sites.size() || *tflops[place] < *tflops[least])) least = place;
  }
  std::vector<std::string> texts(sites.size());
  for (std::size_t place = 0; place < sites.size(); ++place) {
    if (!tflops[place]) continue;
    texts[place] = place == least ? "its TFLOPS, the least of all"
                                  : fmt::format("its TFLOPS, {:.2f} times {}'s",
                                                *tflops[place] / *tflops[least], sites[least].site);
  }
  return texts;
}

// The sites of known speed, which share a round.
struct KnownPaces {
  std::vector<std::size_t> places;
  std::vector<Pace> paces;
  bool in_seconds = true;  // false: relative to the slowest site
};

KnownPaces known_paces(std::span<const SiteKnowledge> sites, std::span<const Speed> speeds) {
  KnownPaces known;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    const auto& speed = speeds[place];
    if (speed.source == Source::kNothing) continue;
    // Seconds cannot be added to relative times.
    if (speed.source == Source::kTflopsAlone) known.in_seconds = false;
    known.places.push_back(place);
    known.paces.push_back(
        {known.in_seconds ? sites[place].overhead_seconds : 0, speed.step_seconds});
  }
  return known;
}

// Returns the reason for a site's work, without its batch.
std::string reason_of(const SitePlan& work, Source source, const std::string& tflops,
                      std::optional<double> round_seconds) {
  const auto steps = fmt::format("{} steps of {}", work.local_steps, work.batch);
  const auto end = round_seconds
                       ? fmt::format("{} fill the {} round", steps, duration_text(*round_seconds))
                       : steps;
  switch (source) {
    case Source::kRun:
      return fmt::format("{} a step, measured in the run: {}", duration_text(*work.step_seconds),
                         end);
    case Source::kProfile:
      return fmt::format("{} a step from its profile: {}", duration_text(*work.step_seconds), end);
    case Source::kTflops:
      return fmt::format("about {} a step from {}: {}", duration_text(*work.step_seconds), tflops,
                         end);
    case Source::kTflopsAlone:
      return fmt::format("from {}: {}", tflops, steps);
    case Source::kNothing:
      return "its speed is unknown yet and is measured in the round: " + steps;
  }
  throw InternalError("unknown source of a step time");
}

}  // namespace

// Chooses the load of every site first. The target is then the slowest site's time for the
// sequences of the base work, and every site gets the steps that end near it. Is that too long, the
// bound is the target, and slow sites leave out steps of the base work.
RoundPlan hybrid_work(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                      std::span<const StepPredictor> predictors) {
  if (config.equal_steps) return equal_steps_work(config, sites, predictors);
  const int64_t most = most_batch(config, sites.size());
  const int64_t start = start_batch(config, most);
  RoundPlan plan;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    const auto load = choose_load(config, sites[place], predictors[place], most);
    auto& work = plan.sites.emplace_back();
    work.site = sites[place].site;
    work.local_steps = config.base_steps;
    work.batch = load.batch;
    work.micro_batch = load.micro_batch;
  }
  const auto speeds = speeds_of(config, sites, predictors, plan);
  const auto known = known_paces(sites, speeds);
  if (known.places.empty()) refuse_unknown_speeds();
  // Of each known site: the steps for as many sequences as the base work has, and their end.
  std::vector<double> base_steps, base_ends;
  for (std::size_t i = 0; i < known.places.size(); ++i) {
    const auto batch = static_cast<double>(plan.sites[known.places[i]].batch);
    base_steps.push_back(
        std::max(1.0, static_cast<double>(config.base_steps) * static_cast<double>(start) / batch));
    base_ends.push_back(known.paces[i].overhead_seconds +
                        base_steps[i] * known.paces[i].step_seconds);
  }
  const double most_seconds = round_bound(config, known.paces, known.in_seconds).seconds;
  const double target_seconds = std::min(std::ranges::max(base_ends), most_seconds);
  const auto steps = steps_to_meet(known.paces, target_seconds, most_seconds);
  const int64_t most_steps = most_local_steps(config);
  for (std::size_t i = 0; i < known.places.size(); ++i) {
    auto& work = plan.sites[known.places[i]];
    // A slower site's first step may end later than the bound; the others then wait for it.
    work.local_steps = std::min(steps[i], most_steps);
    if (base_ends[i] > most_seconds * (1 + kTimeRounding)) {
      work.left_out_steps = std::max<int64_t>(0, std::llround(base_steps[i]) - work.local_steps);
    }
  }
  return plan;
}

// Separate from hybrid_work(), because an older plan is predicted again from newer step times.
void explain_hybrid(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors, RoundPlan& plan) {
  const auto speeds = speeds_of(config, sites, predictors, plan);
  std::vector<double> overheads;
  for (std::size_t place = 0; place < sites.size(); ++place) {
    overheads.push_back(sites[place].overhead_seconds);
    plan.sites[place].step_seconds.reset();
    const auto source = speeds[place].source;
    const bool in_seconds = source != Source::kNothing && source != Source::kTflopsAlone;
    if (in_seconds) plan.sites[place].step_seconds = speeds[place].step_seconds;
  }
  predict_round(plan, overheads);
  const int64_t start = start_batch(config, most_batch(config, sites.size()));
  const auto tflops = compared_tflops(sites);
  const auto known = known_paces(sites, speeds);
  for (std::size_t place = 0; place < sites.size(); ++place) {
    auto& work = plan.sites[place];
    work.reason = reason_of(work, speeds[place].source, tflops[place], plan.round_seconds);
    if (work.left_out_steps > 0) {
      work.reason += fmt::format("; it leaves out {} of {} steps, so that {}", work.left_out_steps,
                                 work.local_steps + work.left_out_steps,
                                 round_bound(config, known.paces, known.in_seconds).reason);
    }
    if (config.equal_steps || work.batch == start || !predictors[place].has_fits()) continue;
    const auto base = choose_load(config, sites[place], predictors[place], start);
    const double gain = static_cast<double>(work.batch) / static_cast<double>(base.batch) *
                        *predictors[place].seconds(base.batch, base.micro_batch) /
                        *work.step_seconds;
    work.reason += fmt::format("; {:.2f} times the tokens/s of batch {}", gain, start);
  }
}

}  // namespace farstep::heterogeneity
