// A run's figures are made from those that the sites have counted, never from their steps: a page
// of a run under way does it every second.
#include "trainer/account/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "trainer/account/membership.h"

namespace farstep {

namespace {

// Notes the sites that are left out, and why.
void note_missing_sites(RunReport& report) {
  for (const auto& file : report.unreadable) {
    report.notes.push_back(fmt::format("{}{}; it is left out of all sums",
                                       file.site.empty() ? "" : fmt::format("{}: ", file.site),
                                       file.reason));
  }
  // A missing site is a note and no error, as folders are often fetched one by one.
  for (const auto& name : report.site_names) {
    const auto is_here = std::ranges::find(report.sites, name, &SiteReport::site);
    const auto is_unreadable = std::ranges::find(report.unreadable, name, &UnreadableFile::site);
    if (is_here == report.sites.end() && is_unreadable == report.unreadable.end()) {
      report.notes.push_back(fmt::format("{}: no events here; it is left out of all sums", name));
    }
  }
}

struct LossSum {
  double sum = 0;
  int64_t tokens = 0;
  int64_t hits = 0, counted_tokens = 0;  // of shares with hits
  std::size_t sites = 0, expected_sites = 0;

  bool is_whole() const { return sites >= expected_sites && tokens > 0; }
};

// Weighted by targets: sites take different numbers of them in a round.
std::map<int64_t, double> means(const std::map<int64_t, LossSum>& sums) {
  std::map<int64_t, double> losses;
  for (const auto& [round, loss] : sums) {
    // A mean over some of the shares would be of other examples than the rounds around it.
    if (loss.is_whole()) losses[round] = loss.sum / static_cast<double>(loss.tokens);
  }
  return losses;
}

std::map<int64_t, double> accuracies(const std::map<int64_t, LossSum>& sums) {
  std::map<int64_t, double> shares;
  for (const auto& [round, loss] : sums) {
    if (!loss.is_whole() || loss.counted_tokens != loss.tokens) continue;
    shares[round] = static_cast<double>(loss.hits) / static_cast<double>(loss.tokens);
  }
  return shares;
}

// Returns how many of these sites have records here, and validate: those that read data.
std::size_t count_validating(const RunReport& report, const Names& names) {
  return static_cast<std::size_t>(std::ranges::count_if(report.sites, [&](const auto& site) {
    return site.run.reads_data && std::ranges::find(names, site.site) != names.end();
  }));
}

void collect_losses(RunReport& report) {
  std::map<int64_t, LossSum> training;
  std::map<int64_t, LossSum> validation;
  report.noise_scales.clear();
  for (const auto& site : report.sites) {
    for (const auto& round : site.rounds) {
      if (round.noise_scale) report.noise_scales[round.round] = *round.noise_scale;
      if (!round.train_loss) continue;
      auto& loss = training[round.round];
      loss.sum += *round.train_loss * static_cast<double>(round.tokens);
      loss.tokens += round.tokens;
    }
    for (const auto& [round, validated] : site.validations) {
      const auto& share = validated.share;
      auto& loss = validation[round];
      loss.expected_sites =
          std::max(loss.expected_sites, count_validating(report, validated.members));
      loss.sum += share.loss_sum;
      loss.tokens += share.tokens;
      loss.hits += share.hits.value_or(0);
      if (share.hits) loss.counted_tokens += share.tokens;
      ++loss.sites;
    }
  }
  // Training losses are means over the sites that are there; each comes with its tokens. A site may
  // have evaluated a round that another member has not reached: such a round has no mean.
  report.train_losses = means(training);
  report.validation_losses = means(validation);
  report.validation_accuracies = accuracies(validation);
}

}  // namespace

void RunReport::settle(const std::vector<std::string>& file_notes) {
  site_names = names_of_run(sites);
  // Files come in the order of their folders' names; reports have the order of the run.
  const auto place = [&](const SiteReport& site) {
    return std::ranges::find(site_names, site.site);
  };
  if (!std::ranges::is_sorted(sites, {}, place)) std::ranges::stable_sort(sites, {}, place);
  run = sites.front().run.run;
  notes = file_notes;
  note_missing_sites(*this);
  rounds_done = std::ranges::max_element(sites, {}, &SiteReport::rounds_done)->rounds_done;
  collect_losses(*this);
}

std::optional<double> RunReport::final_loss() const {
  // Validation is of theta_global; a training loss is of replicas, and each on other examples.
  const auto& losses = validation_losses.empty() ? train_losses : validation_losses;
  if (losses.empty()) return std::nullopt;
  return losses.rbegin()->second;
}

std::optional<double> RunReport::final_accuracy() const {
  if (validation_accuracies.empty()) return std::nullopt;
  return validation_accuracies.rbegin()->second;
}

int64_t RunReport::wan_bytes_sent() const {
  return std::accumulate(
      sites.begin(), sites.end(), int64_t{0},
      [](int64_t sum, const SiteReport& site) { return sum + site.traffic.wan_bytes_sent; });
}

TimeUse RunReport::total_time() const {
  TimeUse all;
  for (const auto& site : sites) all += site.time().total;
  return all;
}

// Added over the sites, although they train at different times.
const RunEvent& RunReport::newest_run() const {
  return std::ranges::max_element(sites, {}, &SiteReport::last_start)->run;
}

double RunReport::tokens_per_second() const {
  return std::accumulate(sites.begin(), sites.end(), 0.0, [](double sum, const SiteReport& site) {
    return sum + site.tokens_per_second();
  });
}

}  // namespace farstep
