#include "trainer/watch/alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "trainer/account/outliers.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr double kLeastSilenceSeconds = 60, kStepsOfSilence = 10;
constexpr std::size_t kLeastSpeeds = 5;  // fewer say little about what a link usually does
constexpr double kSlow = 0.5;            // links differ by a tenth or two from round to round
constexpr std::size_t kSmoothed = 3;     // losses; single ones jump
constexpr double kRisen = 1.05;
constexpr int64_t kRoundsOfBadDelta = 10;

// Returns how the other sites know that it is gone; nullopt if they do not.
std::optional<std::string> loss_by_others(const RunReport& report, const std::string& name) {
  const ViewEvent* newest = nullptr;
  for (const auto& site : report.sites) {
    if (site.site == name || site.views.empty()) continue;
    const auto& view = site.views.back();
    if (newest == nullptr || view.round > newest->round) newest = &view;
  }
  if (newest == nullptr || std::ranges::count(newest->members, name) > 0) return std::nullopt;
  for (const auto& site : report.sites) {
    for (const auto& view : site.views) {
      if (view.lost == name) return view.reason.value_or("no reason is known");
    }
  }
  return "no reason is known";
}

// A site that waits for its peers writes nothing, for as long as it takes.
bool is_silent(const SiteReport& site, double now) {
  if (site.progress.activity() != SiteActivity::kTraining || site.steps == 0) return false;
  const double step_seconds =
      site.time().total.compute_seconds / static_cast<double>(std::max<int64_t>(site.steps, 1));
  return now - site.last_seen() > kLeastSilenceSeconds + kStepsOfSilence * step_seconds;
}

std::optional<std::string> why_gone(const RunReport& report, const SiteReport& site, double now) {
  if (site.end) {
    if (site.end->outcome == Outcome::kDone || site.end->outcome == Outcome::kInterrupted) {
      return std::nullopt;
    }
    return fmt::format("{} has ended: {}", site.site, site.end->message);
  }
  if (const auto reason = loss_by_others(report, site.site)) {
    return fmt::format("{} was lost ({}) and has not come back", site.site, *reason);
  }
  if (is_silent(site, now)) {
    return fmt::format("{} has recorded nothing for {:.0f} s", site.site, now - site.last_seen());
  }
  return std::nullopt;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void add_slow_links(const SiteReport& site, std::vector<Alarm>& alarms) {
  for (const auto& [peer, link] : site.links) {
    if (link.speeds.size() < kLeastSpeeds) continue;
    const double usual = median(link.speeds);
    if (link.speeds.back() >= kSlow * usual) continue;
    alarms.push_back({AlarmKind::kSlowLink, fmt::format("{} to {}", site.site, peer),
                      fmt::format("the link from {} to {} has {:.1f} Mbit/s, usually {:.1f} Mbit/s",
                                  site.site, peer, link.speeds.back() * 1e-6, usual * 1e-6)});
  }
}

void add_rising_loss(const RunReport& report, std::vector<Alarm>& alarms) {
  const bool is_validated = report.validation_losses.size() > kSmoothed;
  const auto& losses = is_validated ? report.validation_losses : report.train_losses;
  std::vector<double> values;
  for (const auto& [round, loss] : losses) values.push_back(loss);
  if (values.size() <= kSmoothed) return;
  double least = std::numeric_limits<double>::infinity();
  double mean = 0;
  for (std::size_t i = kSmoothed; i <= values.size(); ++i) {
    least = i > kSmoothed ? std::min(least, mean) : least;
    mean = std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(i - kSmoothed),
                           values.begin() + static_cast<std::ptrdiff_t>(i), 0.0) /
           kSmoothed;
  }
  if (mean <= kRisen * least) return;
  alarms.push_back({AlarmKind::kLossRises, "",
                    fmt::format("the {} loss rises: {} over the last {} values, {} before",
                                is_validated ? "validation" : "training", loss_text(mean),
                                kSmoothed, loss_text(least))});
}

void add_bad_deltas(const RunReport& report, std::vector<Alarm>& alarms) {
  std::map<std::string, OutlierEvent> newest;  // by the site whose they are
  for (const auto& outlier : outliers_of(report)) {
    const bool is_recent = outlier.round > report.rounds_done - kRoundsOfBadDelta;
    if (outlier.is_left_out && is_recent) newest.insert_or_assign(outlier.delta_of, outlier);
  }
  for (const auto& [site, outlier] : newest) {
    alarms.push_back({AlarmKind::kBadDelta, site,
                      fmt::format("the delta of {} in round {} {}, and was left out: its memory or "
                                  "devices may be at fault",
                                  site, outlier.round, outlier.reason)});
  }
}

}  // namespace

std::span<const std::string_view> enum_names(AlarmKind) {
  static constexpr std::array<std::string_view, 4> kNames{"site_gone", "slow_link", "loss_rises",
                                                          "bad_delta"};
  return kNames;
}

// The others have lost it, or it is silent: its own records do not tell.
bool is_gone(const SiteReport& site, std::span<const Alarm> alarms) {
  return !site.end && std::ranges::any_of(alarms, [&](const Alarm& alarm) {
    return alarm.kind == AlarmKind::kSiteGone && alarm.subject == site.site;
  });
}

bool is_over(const RunReport& report) {
  return std::ranges::all_of(report.sites, [](const auto& site) { return site.end.has_value(); });
}

std::vector<Alarm> alarms_of(const RunReport& report, double now) {
  std::vector<Alarm> alarms;
  for (const auto& site : report.sites) {
    if (auto text = why_gone(report, site, now)) {
      alarms.push_back({AlarmKind::kSiteGone, site.site, *std::move(text)});
    }
  }
  if (!is_over(report)) {
    for (const auto& site : report.sites) add_slow_links(site, alarms);
  }
  add_bad_deltas(report, alarms);
  add_rising_loss(report, alarms);
  return alarms;
}

}  // namespace farstep
