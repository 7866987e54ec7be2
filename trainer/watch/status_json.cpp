#include "trainer/watch/status_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/account/membership.h"
#include "trainer/account/outliers.h"
#include "trainer/account/rises.h"
#include "trainer/charts/run_curves.h"
#include "trainer/report/lanes.h"
#include "trainer/report/report_charts.h"
#include "trainer/report/report_tables.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

constexpr std::size_t kColumns = 360;  // about two pixels each
constexpr double kLeastWindowSeconds = 20;

Json or_null(const std::optional<double>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

// Returns what a site does now, as a kind of activity; -1: nothing that a timeline shows.
int present_kind(const SiteReport& site) {
  switch (site.progress.activity()) {
    case SiteActivity::kTraining:
      return static_cast<int>(kCompute);
    case SiteActivity::kServing:
      return static_cast<int>(SpanCause::kServe);
    case SiteActivity::kWaiting:
      return static_cast<int>(SpanCause::kWait);
    case SiteActivity::kSending:
      return static_cast<int>(SpanCause::kWan);
    default:
      return -1;
  }
}

Json plan_json(const SiteReport& site) {
  if (!site.plan) return nullptr;
  const auto& plan = *site.plan;
  return {{"round", plan.round},
          {"local_steps", plan.local_steps},
          {"batch", plan.batch},
          {"micro_batch", plan.micro_batch},
          {"step_seconds", or_null(plan.step_seconds)},
          {"idle_seconds", or_null(plan.idle_seconds)},
          {"reason", plan.reason}};
}

Json site_json(const SiteReport& site, std::span<const Alarm> alarms) {
  const auto& progress = site.progress;
  const auto& use = site.time().total;
  const int kind = present_kind(site);
  Json idle = Json::object();
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const auto cause = static_cast<SpanCause>(i);
    if (cause != SpanCause::kServe) idle[std::string(name_of(cause))] = use.seconds(cause);
  }
  return {{"site", site.site},
          {"devices", site.devices_text()},
          {"trains", site.run.trains},
          {"activity", progress.activity_text()},
          {"kind", kind < 0 ? Json(nullptr) : Json(class_of(static_cast<std::size_t>(kind)))},
          {"is_gone", is_gone(site, alarms)},
          {"last_seen", site.last_seen()},
          {"round", std::min(progress.round(), progress.rounds())},
          {"step", progress.step()},
          {"local_steps", progress.local_steps()},
          {"fraction", progress.fraction()},
          {"seconds_left", or_null(progress.seconds_left())},
          {"loss", or_null(site.last_loss)},
          {"loss_text", loss_text(site.last_loss)},
          {"speed_text", short_count_text(progress.tokens_per_second())},
          {"idle_text", percent_text(use.idle_fraction())},
          {"steps", site.steps},
          {"tokens", site.tokens},
          {"tokens_per_second", site.tokens_per_second()},
          {"present_tokens_per_second", progress.tokens_per_second()},
          {"compute_seconds", use.compute_seconds},
          {"idle_seconds", std::move(idle)},
          {"idle_fraction", use.idle_fraction()},
          {"lost_seconds", site.time().lost_seconds},
          {"wan_bytes_sent", site.traffic.wan_bytes_sent},
          {"wan_bytes_received", site.traffic.wan_bytes_received},
          {"plan", plan_json(site)},
          {"checkpoint", site.checkpoint ? Json(site.checkpoint->folder) : Json(nullptr)},
          {"outcome", site.end ? Json(name_of(site.end->outcome)) : Json(nullptr)},
          {"message", site.end ? site.end->message : ""}};
}

Json table_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) rows.push_back({{"cells", row.cells}, {"is_sum", row.is_sum}});
  return {{"title", table.title},
          {"header", table.header},
          {"rows", std::move(rows)},
          {"left_columns", table.left_columns}};
}

Json legend_json(const std::vector<LegendEntry>& entries) {
  Json legend = Json::array();
  for (const auto& [css_class, label] : entries) {
    legend.push_back({{"kind", css_class}, {"label", label}});
  }
  return legend;
}

Json figures_json(const RunReport& report) {
  Json figures = Json::array();
  for (const auto& [value, label] : headline_figures(report)) {
    figures.push_back({{"value", value}, {"label", label}});
  }
  return figures;
}

// Returns the longest time that a site still needs; null if one does not know it.
Json seconds_left(const RunReport& report) {
  double longest = 0;
  for (const auto& site : report.sites) {
    if (site.end) continue;
    const auto left = site.progress.seconds_left();
    if (!left) return nullptr;
    longest = std::max(longest, *left);
  }
  return longest;
}

// Returns when the first and the last record were written.
std::pair<double, double> extent_of(const RunReport& report) {
  double begin = report.sites.front().first_seen();
  double end = begin;
  for (const auto& site : report.sites) {
    begin = std::min(begin, site.first_seen());
    end = std::max(end, site.last_seen());
  }
  return {begin, end};
}

// A column as [kind, level, kind, level, ...] of those above 0.
Json column_json(const std::array<double, kKinds>& shares) {
  Json column = Json::array();
  const auto boxes = boxes_of(shares);
  for (std::size_t i = 0; i < kKinds; ++i) {
    const std::size_t kind = kind_from_below(i);
    if (boxes[kind].top == 0) continue;
    column.push_back(kind);
    column.push_back(boxes[kind].top - boxes[kind].bottom);
  }
  return column;
}

Json runs_json(const Shares& shares) {
  Json runs = Json::array();
  Json open;
  int64_t count = 0;
  const auto close = [&] {
    if (count == 0) return;
    Json run = Json::array({count});
    for (auto& value : open) run.push_back(value);
    runs.push_back(std::move(run));
  };
  for (const auto& column : shares) {
    auto next = column_json(column);
    if (count > 0 && next == open) {
      ++count;
      continue;
    }
    close();
    open = std::move(next);
    count = 1;
  }
  close();
  return runs;
}

}  // namespace

Json status_json(const RunReport& report, std::span<const Alarm> alarms, int64_t version,
                 double now) {
  Json json{{"version", version},
            {"now", now},
            {"run", report.run},
            {"unit", report.unit()},
            {"facts", facts(report)},
            {"is_over", is_over(report)},
            {"rounds_done", report.rounds_done},
            {"rounds", report.newest_run().rounds},
            {"seconds_left", seconds_left(report)},
            {"figures", figures_json(report)},
            {"links", table_json(link_table(report))},
            {"idle", table_json(idle_table(report))},
            {"notes", report.notes}};
  json["sites"] = Json::array();
  for (const auto& site : report.sites) json["sites"].push_back(site_json(site, alarms));
  json["alarms"] = Json::array();
  for (const auto& alarm : alarms) {
    json["alarms"].push_back(
        {{"kind", name_of(alarm.kind)}, {"subject", alarm.subject}, {"text", alarm.text}});
  }
  json["membership_changes"] = change_lines(membership_of(report));
  json["sync_changes"] = sync_lines(report);
  json["outliers"] = outlier_lines(report);
  json["rises"] = rise_lines(report);
  return json;
}

// Columns keep their places in time, so that the drawing moves and does not flicker.
Json timeline_json(const RunReport& report, double seconds, double now,
                   std::span<const Alarm> alarms) {
  const auto [begin, last] = extent_of(report);
  // Long after its end a run would be out of every window.
  const double end = is_over(report) ? last : std::max(now, last);
  // A young run fills the drawing too.
  const double whole = std::max(end - begin, kLeastWindowSeconds);
  const double window = seconds > 0 ? std::min(seconds, whole) : whole;
  const double width = window / static_cast<double>(kColumns);
  const double from = (std::floor(end / width) + 1 - static_cast<double>(kColumns)) * width;
  const auto column_at = [=](double time) { return (time - from) / width; };
  Json json{{"now", end}, {"from", from}, {"column_seconds", width}, {"columns", kColumns}};
  json["kinds"] = json["labels"] = json["sites"] = Json::array();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    json["kinds"].push_back(class_of(kind));
    json["labels"].push_back(label_of_kind(kind));
  }
  std::vector<Lane> lanes;
  for (const auto& site : report.sites) {
    auto& lane = lanes.emplace_back(make_lane(site, from));
    // What goes on now has no record yet.
    const double seen = site.last_seen();
    const int kind = present_kind(site);
    if (kind >= 0 && !site.end && !is_gone(site, alarms) && seen < end) {
      lane.activities.push_back({{seen, end}, static_cast<std::size_t>(kind)});
    }
    json["sites"].push_back(
        {{"site", site.site}, {"runs", runs_json(share_out(lane, kColumns, column_at))}});
  }
  json["rounds"] = Json::array();
  for (const auto& [round, time] : all_commits(lanes)) json["rounds"].push_back({round, time});
  return json;
}

Json settings_json(const RunReport& report) {
  return {{"settings", table_json(chosen_settings_table(report))},
          {"defaults", table_json(default_settings_table(report))}};
}

Json charts_json(const RunReport& report) {
  auto json = curves_of_run(report);
  json["legend"] = legend_json(loss_legend(report));
  json["idle"] = idle_chart(report);
  json["causes"] = legend_json(idle_legend(report));
  return json;
}

}  // namespace farstep
