#include "trainer/watch/prometheus.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return text;
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  }
  return text.empty() ? "" : "{" + text + "}";
}

// All samples of a metric stand together, after its help and type.
class Page {
 public:
  enum class Type { kGauge, kCounter };

  void begin(std::string_view name, Type type, std::string_view help) {
    name_ = name;
    header_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                          type == Type::kGauge ? "gauge" : "counter");
  }
  void add(const Labels& labels, std::optional<double> value) {
    if (!value) return;
    // A metric without samples has no header either.
    text_ +=
        std::exchange(header_, "") + fmt::format("{}{} {}\n", name_, labels_text(labels), *value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_, header_, text_;
};

constexpr auto kGauge = Page::Type::kGauge;
constexpr auto kCounter = Page::Type::kCounter;

template <typename Of>
struct Metric {
  std::string_view name;
  Page::Type type;
  std::string_view help;
  std::function<std::optional<double>(const Of&)> value;
};

// Counters fall when a site goes on from a checkpoint: what it had done after it does not count.
// Prometheus takes that for a restart.
const std::vector<Metric<SiteReport>>& site_metrics() {
  static const std::vector<Metric<SiteReport>> kMetrics = {
      {"farstep_site_round", kGauge, "Outer round that the site is in.",
       [](const SiteReport& site) { return site.progress.round(); }},
      {"farstep_site_rounds_done", kGauge, "Newest outer round that the site has committed.",
       [](const SiteReport& site) { return site.rounds_done; }},
      {"farstep_site_step", kGauge, "Inner steps done of the present round.",
       [](const SiteReport& site) { return site.progress.step(); }},
      {"farstep_site_planned_steps", kGauge, "Inner steps planned for the present round.",
       [](const SiteReport& site) { return site.progress.local_steps(); }},
      {"farstep_site_loss", kGauge, "Training loss of the site's last step.",
       [](const SiteReport& site) { return site.last_loss; }},
      {"farstep_site_steps_total", kCounter, "Inner steps that count.",
       [](const SiteReport& site) { return site.steps; }},
      {"farstep_site_tokens_total", kCounter, "Tokens (or images) that the site was trained on.",
       [](const SiteReport& site) { return site.tokens; }},
      {"farstep_site_tokens_per_second", kGauge,
       "Tokens (or images) a second of training and idle time.",
       [](const SiteReport& site) { return site.tokens_per_second(); }},
      {"farstep_site_compute_seconds_total", kCounter, "Seconds of training work.",
       [](const SiteReport& site) { return site.time().total.compute_seconds; }},
      {"farstep_site_lost_seconds_total", kCounter, "Seconds that were lost to failures.",
       [](const SiteReport& site) { return site.time().lost_seconds; }},
      {"farstep_site_wan_sent_bytes_total", kCounter, "Payload sent to all peers.",
       [](const SiteReport& site) { return site.traffic.wan_bytes_sent; }},
      {"farstep_site_wan_received_bytes_total", kCounter, "Payload received from all peers.",
       [](const SiteReport& site) { return site.traffic.wan_bytes_received; }},
      {"farstep_site_last_record_timestamp_seconds", kGauge,
       "When the site wrote its last record, unix time of the coordinator's clock.",
       [](const SiteReport& site) { return site.last_seen(); }},
      {"farstep_site_ended", kGauge, "1: the site's process has ended in good order.",
       [](const SiteReport& site) { return site.end ? 1.0 : 0.0; }}};
  return kMetrics;
}

const std::vector<Metric<LinkReport>>& link_metrics() {
  static const std::vector<Metric<LinkReport>> kMetrics = {
      {"farstep_link_sent_bytes_total", kCounter, "Payload sent to the peer.",
       [](const LinkReport& link) { return link.bytes_sent; }},
      {"farstep_link_received_bytes_total", kCounter, "Payload received from the peer.",
       [](const LinkReport& link) { return link.bytes_received; }},
      {"farstep_link_retransmitted_bytes_total", kCounter, "Bytes that had to be sent again.",
       [](const LinkReport& link) { return link.retransmitted_bytes; }},
      {"farstep_link_bits_per_second", kGauge, "Measured speed of the link.",
       [](const LinkReport& link) { return link.bits_per_second; }},
      {"farstep_link_round_trip_seconds", kGauge, "Round trip of the link.",
       [](const LinkReport& link) { return link.rtt_seconds; }}};
  return kMetrics;
}

void add_run(Page& page, const RunReport& report) {
  const auto& start = report.newest_run();
  page.begin("farstep_run_info", kGauge, "The run: its name, what it counts, and the version.");
  page.add({{"run", report.run}, {"unit", report.unit()}, {"version", start.version}}, 1.0);
  page.begin("farstep_rounds_done", kGauge, "Newest outer round that any site has committed.");
  page.add({}, static_cast<double>(report.rounds_done));
  page.begin("farstep_rounds", kGauge, "Outer rounds of the whole run.");
  page.add({}, static_cast<double>(start.rounds));
  page.begin("farstep_sites", kGauge, "Sites of the run.");
  page.add({}, static_cast<double>(report.site_names.size()));
  page.begin("farstep_unreadable_files", kGauge,
             "Files of records that cannot be read, whose sites count in no figure.");
  page.add({}, static_cast<double>(report.unreadable.size()));
  page.begin("farstep_training_loss", kGauge, "Training loss of the last round, over all sites.");
  const auto last = [](const std::map<int64_t, double>& figures) {
    return figures.empty() ? std::nullopt : std::optional(figures.rbegin()->second);
  };
  page.add({}, last(report.train_losses));
  page.begin("farstep_validation_loss", kGauge, "Newest validation loss of the model.");
  page.add({}, last(report.validation_losses));
  page.begin("farstep_validation_accuracy", kGauge, "Newest accuracy of the model, 0 to 1.");
  page.add({}, last(report.validation_accuracies));
  page.begin("farstep_gradient_noise_scale", kGauge, "Newest gradient noise scale, in examples.");
  page.add({}, last(report.noise_scales));
}

}  // namespace

std::string prometheus_text(const RunReport& report, std::span<const Alarm> alarms) {
  Page page;
  add_run(page, report);
  for (const auto& metric : site_metrics()) {
    page.begin(metric.name, metric.type, metric.help);
    for (const auto& site : report.sites) page.add({{"site", site.site}}, metric.value(site));
  }
  page.begin("farstep_site_idle_seconds_total", kCounter, "Seconds without training, by cause.");
  for (const auto& site : report.sites) {
    for (std::size_t i = 0; i < kSpanCauses; ++i) {
      const auto cause = static_cast<SpanCause>(i);
      if (cause == SpanCause::kServe) continue;
      page.add({{"site", site.site}, {"cause", std::string(name_of(cause))}},
               site.time().total.seconds(cause));
    }
  }
  page.begin("farstep_site_activity", kGauge, "1: what the site does now.");
  for (const auto& site : report.sites) {
    page.add({{"site", site.site}, {"activity", site.progress.activity_text()}}, 1.0);
  }
  for (const auto& metric : link_metrics()) {
    page.begin(metric.name, metric.type, metric.help);
    for (const auto& site : report.sites) {
      for (const auto& [peer, link] : site.links) {
        page.add({{"site", site.site}, {"peer", peer}}, metric.value(link));
      }
    }
  }
  page.begin("farstep_alarms", kGauge, "How many alarms of the kind there are.");
  for (const auto kind : enum_names(AlarmKind{})) {
    double count = 0;
    for (const auto& alarm : alarms) count += name_of(alarm.kind) == kind ? 1 : 0;
    page.add({{"kind", std::string(kind)}}, count);
  }
  return page.text();
}

}  // namespace farstep
