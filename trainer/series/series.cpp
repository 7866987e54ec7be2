#include "trainer/series/series.h"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace farstep {

namespace {

// Collects one site's series by name, so that they come in one order.
class SiteSeries {
 public:
  explicit SiteSeries(const SiteReport& site) : site_(site) {
    site.visit_records([&](const Record& record) {
      // Each process of the site has measured its clock anew.
      const auto* run = std::get_if<RunEvent>(&record.event);
      if (run != nullptr) offset_ = run->clock_offset_seconds;
      time_ = record.time + offset_;
      std::visit([this](const auto& event) { take(event); }, record.event);
    });
  }

  void move_into(std::vector<Series>& all) {
    for (auto& [name, points] : series_) all.push_back({site_.site, name, std::move(points)});
  }

 private:
  template <typename Event>
  void take(const Event&) {}
  void take(const StepEvent& step) {
    ++steps_;
    add("loss/step", steps_, step.loss);
    add("gradient_norm", steps_, step.gradient_norm);
    add("learning_rate", steps_, step.learning_rate);
  }
  void take(const RoundEvent& round) {
    add("loss/round", round.round, round.train_loss);
    add("batch", round.round, static_cast<double>(round.batch));
    add("averaging_weight", round.round, round.averaging_weight);
    const auto use = site_.time().rounds.find(round.round);
    if (use == site_.time().rounds.end()) return;
    add("idle_share", round.round, use->second.idle_fraction());
    if (const double seconds = use->second.total_seconds(); seconds > 0) {
      add("tokens_per_second", round.round, static_cast<double>(round.tokens) / seconds);
    }
    for (std::size_t i = 0; i < kSpanCauses; ++i) {
      const auto cause = static_cast<SpanCause>(i);
      if (site_.time().total.seconds(cause) > 0) {
        add(fmt::format("seconds/{}", name_of(cause)), round.round, use->second.seconds(cause));
      }
    }
  }
  void take(const LinkEvent& link) {
    if (!link.peer || !link.bits_per_second) return;
    add(fmt::format("link/{}/Mbit_per_second", *link.peer), link.round,
        *link.bits_per_second * 1e-6);
  }
  void add(const std::string& name, int64_t place, std::optional<double> value) {
    if (value) series_[name].push_back({time_, place, *value});
  }

  const SiteReport& site_;
  std::map<std::string, std::vector<SeriesPoint>> series_;
  double offset_ = 0, time_ = 0;
  int64_t steps_ = 0;
};

// When each round was committed, by the first site that has it.
std::map<int64_t, double> times_of_rounds(const RunReport& report) {
  std::map<int64_t, double> times;
  for (const auto& site : report.sites) {
    times.try_emplace(0, site.first_seen());
    for (const auto& record : site.milestones) {
      if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
        times.try_emplace(round->round, record.time);
      }
    }
  }
  return times;
}

}  // namespace

std::vector<Series> series_of(const RunReport& report) {
  std::vector<Series> all;
  const auto times = times_of_rounds(report);
  const auto add = [&](const std::string& name, const std::map<int64_t, double>& figures) {
    Series series{"run", name, {}};
    for (const auto& [round, value] : figures) {
      const auto time = times.find(round);
      if (time != times.end()) series.points.push_back({time->second, round, value});
    }
    if (!series.points.empty()) all.push_back(std::move(series));
  };
  add("loss/training", report.train_losses);
  add("loss/validation", report.validation_losses);
  add("accuracy", report.validation_accuracies);
  add("noise_scale", report.noise_scales);
  for (const auto& site : report.sites) SiteSeries(site).move_into(all);
  return all;
}

}  // namespace farstep
