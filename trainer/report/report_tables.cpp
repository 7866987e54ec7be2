// Sentences and tables know the figures and not the page. Text and HTML lay them out differently,
// and both say the same.
#include "trainer/report/report_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

// The rounds that a mean is over. At least 1: a run that ended in its first round is reported too.
double rounds_of(const SiteReport& site) {
  return static_cast<double>(std::max<int64_t>(site.rounds_worked, 1));
}

// Returns the number of decimals for a table with this largest value. Three digits that count; more
// are noise.
int digits_for(double largest) {
  return largest >= 10 ? 1 : largest >= 1 ? 2 : 3;
}

std::string speed_text(double tokens_per_second) {
  return count_text(std::lround(tokens_per_second));
}

std::string percent_text(double fraction) {
  return fmt::format("{:.1f} %", 100 * fraction);
}

// Adds rows to the idle table: the mean of one figure a round for each site, and their sum.
class IdleRows {
 public:
  IdleRows(const RunReport& report, Table& table) : report_(report), table_(table) {
    for (const auto& site : report.sites) {
      all_seconds_ += (site.time.total.total_seconds() + site.time.lost_seconds) / rounds_of(site);
    }
    digits_ = digits_for(all_seconds_ / static_cast<double>(report.sites.size()));
  }

  void add(std::string_view label, const std::function<double(const SiteTime&)>& seconds,
           bool is_sum = false) {
    Table::Row row{{std::string(label)}, is_sum};
    double total = 0;
    for (const auto& site : report_.sites) {
      const double mean = seconds(site.time) / rounds_of(site);
      row.cells.push_back(text(mean));
      total += mean;
    }
    row.cells.push_back(text(total));
    row.cells.push_back(all_seconds_ > 0 ? percent_text(without_rounding(total) / all_seconds_)
                                         : "-");
    table_.rows.push_back(std::move(row));
  }

 private:
  // Avoids "-0.0" for a sum that differs from 0 only by rounding. Half of the last digit that
  // digits_for() ever shows.
  static double without_rounding(double seconds) { return std::abs(seconds) < 5e-4 ? 0 : seconds; }
  std::string text(double seconds) const {
    return fmt::format("{:.{}f}", without_rounding(seconds), digits_);
  }

  const RunReport& report_;
  Table& table_;
  double all_seconds_ = 0;
  int digits_;
};

// A cause that no site had would be a row of zeros.
bool has_any(const RunReport& report, SpanCause cause) {
  return std::ranges::any_of(report.sites,
                             [=](const auto& site) { return site.time.total.seconds(cause) > 0; });
}

// One round, added up over all sites.
struct RoundSum {
  int64_t steps = 0, tokens = 0, bytes_sent = 0;
  double longest_seconds = 0;
  TimeUse use;
  std::string hash;
};

// Adds up each round over the sites; its length is that of the site that took longest.
std::map<int64_t, RoundSum> sum_rounds(const RunReport& report) {
  std::map<int64_t, RoundSum> rounds;
  for (const auto& site : report.sites) {
    for (const auto& record : site.records) {
      const auto* event = std::get_if<RoundEvent>(&record.event);
      if (!event) continue;
      auto& round = rounds[event->round];
      round.steps += event->local_steps;
      round.tokens += event->tokens;
      round.bytes_sent += event->wan_bytes_sent;
      // The rounds' hashes are equal at all sites, so any one is shown.
      round.hash = event->theta_hash;
      if (const auto use = site.time.rounds.find(event->round); use != site.time.rounds.end()) {
        round.use += use->second;
        round.longest_seconds = std::max(round.longest_seconds, use->second.total_seconds());
      }
    }
  }
  return rounds;
}

// Not every round is validated.
std::optional<double> find_round(const std::map<int64_t, double>& figures, int64_t round) {
  const auto found = figures.find(round);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

std::string first_and_last(std::string_view what, const std::map<int64_t, double>& losses) {
  if (losses.empty()) return fmt::format("no {} loss yet", what);
  if (losses.size() == 1) return fmt::format("{} loss {}", what, loss_text(losses.begin()->second));
  return fmt::format("{} loss {} → {}", what, loss_text(losses.begin()->second),
                     loss_text(losses.rbegin()->second));
}

std::string first_and_last_accuracy(const std::map<int64_t, double>& accuracies) {
  const auto last = accuracy_text(accuracies.rbegin()->second);
  if (accuracies.size() == 1) return "accuracy " + last;
  return fmt::format("accuracy {} → {}", accuracy_text(accuracies.begin()->second), last);
}

// Does the same for the validation loss, and adds the accuracy and the share of the time.
std::string validation_text(const RunReport& report) {
  auto text = first_and_last("validation", report.validation_losses);
  if (report.validation_losses.empty()) return text;
  if (const auto& accuracies = report.validation_accuracies; !accuracies.empty()) {
    text += ", " + first_and_last_accuracy(accuracies);
  }
  double seconds = 0;
  double all_seconds = 0;
  for (const auto& site : report.sites) {
    seconds += site.time.total.seconds(SpanCause::kEvaluate);
    all_seconds += site.time.total.total_seconds();
  }
  const auto times = report.validation_losses.size();
  return text + fmt::format(", taken {} time{} in {} of all time", times, times == 1 ? "" : "s",
                            percent_text(all_seconds > 0 ? seconds / all_seconds : 0));
}

// Returns "done at all sites", or the sites that ended otherwise.
std::string ends_text(const RunReport& report) {
  std::string others;
  std::size_t done = 0;
  for (const auto& site : report.sites) {
    if (site.end && site.end->outcome == Outcome::kDone) {
      ++done;
      continue;
    }
    others += "; " + site.site + ": ";
    others += site.end ? std::string(name_of(site.end->outcome)) : "has not ended";
    if (site.end && !site.end->message.empty()) others += " (" + site.end->message + ")";
  }
  if (others.empty()) return "done at all sites";
  return (done > 0 ? fmt::format("{} done", done) + others : others.substr(2));
}

std::string idle_title(const RunReport& report) {
  if (report.rounds_done == 0) return "Device idle time, seconds (no round is over)";
  // Sites that were away have fewer rounds, and each site's mean is over its own.
  const auto most = std::ranges::max(report.sites, {}, &SiteReport::rounds_worked).rounds_worked;
  const auto least = std::ranges::min(report.sites, {}, &SiteReport::rounds_worked).rounds_worked;
  // Sites of a run under way differ by one round now and then.
  if (most - least <= 1) {
    return fmt::format("Device idle time, seconds a round (mean of {})", report.rounds_done);
  }
  return fmt::format("Device idle time, seconds a round (mean of each site's {} to {})", least,
                     most);
}

// Three digits: the estimate has no more.
std::string scale_text(std::optional<double> scale) {
  return scale ? fmt::format("{:.3g}", *scale) : "-";
}

}  // namespace

std::vector<std::string> facts(const RunReport& report) {
  // The members of a run agree on these facts.
  const auto& run = report.sites.front().run;
  const auto examples =
      run.sequence_length == 1
          ? run.unit
          : fmt::format("sequences of {} {}", count_text(run.sequence_length), run.unit);
  Names facts{fmt::format("{} of {} rounds at {} site{}", report.rounds_done, run.rounds,
                          report.site_names.size(), report.site_names.size() == 1 ? "" : "s"),
              fmt::format("{} parameters, {}",
                          short_count_text(static_cast<double>(run.parameters)), examples),
              validation_text(report), first_and_last("training", report.train_losses),
              ends_text(report)};
  if (!report.noise_scales.empty()) {
    facts.push_back(fmt::format("gradient noise scale {} {}",
                                scale_text(report.noise_scales.rbegin()->second),
                                run.sequence_length == 1 ? run.unit : "sequences"));
  }
  return facts;
}

// `wait` and `wan` always have a row, for comparison with the papers; other causes only if they
// occur.
Table idle_table(const RunReport& report) {
  Table table{.title = idle_title(report), .header = {"cause"}, .rows = {}, .trailing_columns = 2};
  for (const auto& site : report.sites) table.header.push_back(site.site);
  table.header.insert(table.header.end(), {"total", "share"});
  IdleRows rows(report, table);
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    const auto cause = static_cast<SpanCause>(i);
    const bool always = cause == SpanCause::kWait || cause == SpanCause::kWan;
    if (cause == SpanCause::kServe || (!always && !has_any(report, cause))) continue;
    rows.add(label_of(cause), [=](const SiteTime& time) { return time.total.seconds(cause); });
  }
  rows.add(
      "idle", [](const SiteTime& time) { return time.total.idle_seconds(); }, true);
  rows.add("training", [](const SiteTime& time) { return time.total.compute_seconds; });
  if (has_any(report, SpanCause::kServe)) {
    rows.add("serving", [](const SiteTime& time) { return time.total.serve_seconds(); });
  }
  if (std::ranges::any_of(report.sites,
                          [](const auto& site) { return site.time.lost_seconds > 0; })) {
    rows.add("lost to failures", [](const SiteTime& time) { return time.lost_seconds; });
  }
  rows.add("not accounted for", [](const SiteTime& time) { return time.unexplained_seconds(); });
  rows.add(
      "wall time", [](const SiteTime& time) { return time.wall_seconds; }, true);
  Table::Row fractions{{"idle share of a site"}};
  TimeUse all;
  for (const auto& site : report.sites) {
    fractions.cells.push_back(percent_text(site.time.total.idle_fraction()));
    all += site.time.total;
  }
  fractions.cells.insert(fractions.cells.end(), {percent_text(all.idle_fraction()), ""});
  table.rows.push_back(std::move(fractions));
  return table;
}

Table work_table(const RunReport& report) {
  Table table{.title = "Work",
              .header = {"site", "device", "steps", report.unit(), "merged", report.unit() + "/s",
                         "first loss", "last loss", "idle (s)"},
              .rows = {},
              .left_columns = 2};
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t merged_tokens = 0;
  double tokens_per_second = 0;
  double idle_seconds = 0;
  for (const auto& site : report.sites) {
    table.rows.push_back(
        {{site.site, site.devices_text(), count_text(site.steps), count_text(site.tokens),
          count_text(site.merged_tokens), speed_text(site.tokens_per_second()),
          loss_text(site.first_loss), loss_text(site.last_loss),
          fmt::format("{:.1f}", site.time.total.idle_seconds())}});
    steps += site.steps;
    tokens += site.tokens;
    merged_tokens += site.merged_tokens;
    tokens_per_second += site.tokens_per_second();
    idle_seconds += site.time.total.idle_seconds();
  }
  table.rows.push_back(
      {{"total", "", count_text(steps), count_text(tokens), count_text(merged_tokens),
        speed_text(tokens_per_second), "", "", fmt::format("{:.1f}", idle_seconds)},
       true});
  return table;
}

Table device_table(const RunReport& report) {
  Table table{.title = "Devices of a site",
              .header = {"site", "device", "training (s)", "idle (s)", "idle share"},
              .rows = {},
              .left_columns = 2};
  for (const auto& site : report.sites) {
    for (std::size_t device = 0; device < site.time.device_seconds.size(); ++device) {
      // A device is idle while the site's other devices, or the site itself, are not.
      const double seconds = site.time.device_seconds[device];
      table.rows.push_back({{site.site, site.device_name(device), fmt::format("{:.1f}", seconds),
                             fmt::format("{:.1f}", site.time.total.total_seconds() - seconds),
                             percent_text(site.time.device_idle_fraction(device))}});
    }
  }
  return table;
}

std::vector<std::string> plan_lines(const RunReport& report) {
  std::vector<std::string> lines;
  for (const auto& site : report.sites) {
    const PlanEvent* last = nullptr;
    for (const auto& record : site.records) {
      if (const auto* plan = std::get_if<PlanEvent>(&record.event)) last = plan;
    }
    // A site that was lost before its first plan.
    if (last == nullptr) continue;
    lines.push_back(fmt::format("{}, round {}: {}", site.site, last->round, last->reason));
  }
  return lines;
}

std::vector<std::string> sync_lines(const RunReport& report) {
  std::vector<std::string> lines;
  for (const auto& change : sync_changes(report)) {
    lines.push_back(fmt::format("from round {}: {}", change.round, change.reason));
  }
  return lines;
}

// With one peer the uplink is that link, so it gets no row of its own.
Table link_table(const RunReport& report) {
  Table table{
      .title = "Links as the run measured them",
      .header = {"site", "to", "sent", "received", "Mbit/s", "round trip (ms)", "sent again"},
      .rows = {},
      .left_columns = 2};
  const auto scaled = [](const std::optional<double>& figure, double scale) {
    return figure ? fmt::format("{:.1f}", scale * *figure) : std::string("-");
  };
  const auto add_row = [&](const std::string& site, const std::string& to, const LinkReport& link) {
    table.rows.push_back({{site, to, bytes_text(link.bytes_sent), bytes_text(link.bytes_received),
                           scaled(link.bits_per_second, 1e-6), scaled(link.rtt_seconds, 1e3),
                           fmt::format("{:.2f} %", 100 * link.retransmitted_share())}});
  };
  for (const auto& site : report.sites) {
    for (const auto& [peer, link] : site.links) add_row(site.site, peer, link);
    if (site.links.size() > 1) add_row(site.site, "all", site.uplink);
  }
  return table;
}

Table traffic_table(const RunReport& report) {
  Table table{.title = "Traffic between sites, as Farstep counted it and as the kernel did (k)",
              .header = {"site", "sent", "received", "sent (k)", "received (k)", "WAN exposed (s)",
                         "of its time", "hidden (s)", "hidden"},
              .rows = {}};
  Traffic total;
  double exposed_seconds = 0;
  double hidden_seconds = 0;
  double all_seconds = 0;
  const auto add_row = [&table](const std::string& name, const Traffic& traffic, double exposed,
                                double hidden, double total_seconds, bool is_sum) {
    // Before the first sync there is no time to take a share of.
    const auto share = [](double seconds, double all) {
      return percent_text(all > 0 ? seconds / all : 0);
    };
    table.rows.push_back(
        {{name, bytes_text(traffic.wan_bytes_sent), bytes_text(traffic.wan_bytes_received),
          bytes_text(traffic.socket_bytes_sent), bytes_text(traffic.socket_bytes_received),
          fmt::format("{:.1f}", exposed), share(exposed, total_seconds),
          fmt::format("{:.1f}", hidden), share(hidden, exposed + hidden)},
         is_sum});
  };
  for (const auto& site : report.sites) {
    const double exposed = site.time.total.seconds(SpanCause::kWan);
    add_row(site.site, site.traffic, exposed, site.hidden_wan_seconds,
            site.time.total.total_seconds(), false);
    all_seconds += site.time.total.total_seconds();
    total += site.traffic;
    exposed_seconds += exposed;
    hidden_seconds += site.hidden_wan_seconds;
  }
  add_row("total", total, exposed_seconds, hidden_seconds, all_seconds, true);
  return table;
}

// Keeps every k-th round, and the last one always.
Table round_table(const RunReport& report, std::size_t most_rows) {
  const auto rounds = sum_rounds(report);
  const std::size_t every = (rounds.size() + most_rows - 1) / most_rows;
  Table table{
      .title = every > 1 ? fmt::format("Rounds (every {}th)", every) : "Rounds",
      .header = {"round", "seconds", "steps", report.unit(), "training loss", "validation loss"},
      .rows = {}};
  const auto& accuracies = report.validation_accuracies;
  if (!accuracies.empty()) table.header.push_back("accuracy");
  table.header.insert(table.header.end(),
                      {"waiting (s)", "WAN (s)", "idle share", "sent", "theta hash"});
  const bool has_noise = !report.noise_scales.empty();
  if (has_noise) table.header.emplace_back("noise scale");
  std::size_t index = 0;
  for (const auto& [number, round] : rounds) {
    const bool is_last = ++index == rounds.size();
    if (!is_last && index % every != 0) continue;
    Table::Row row{{std::to_string(number), fmt::format("{:.1f}", round.longest_seconds),
                    count_text(round.steps), count_text(round.tokens),
                    loss_text(find_round(report.train_losses, number)),
                    loss_text(find_round(report.validation_losses, number))}};
    if (!accuracies.empty()) row.cells.push_back(accuracy_text(find_round(accuracies, number)));
    row.cells.insert(row.cells.end(), {fmt::format("{:.1f}", round.use.seconds(SpanCause::kWait)),
                                       fmt::format("{:.1f}", round.use.seconds(SpanCause::kWan)),
                                       percent_text(round.use.idle_fraction()),
                                       bytes_text(round.bytes_sent), round.hash.substr(0, 8)});
    if (has_noise) row.cells.push_back(scale_text(find_round(report.noise_scales, number)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace farstep
