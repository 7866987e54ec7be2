// Sentences and tables know the figures and not the page. Text and HTML lay them out differently,
// and both say the same.
#include "trainer/report/report_tables.h"

#include <algorithm>
#include <cmath>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

std::string speed_text(double tokens_per_second) {
  return count_text(std::lround(tokens_per_second));
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
    for (const auto& event : site.rounds) {
      auto& round = rounds[event.round];
      round.steps += event.local_steps;
      round.tokens += event.tokens;
      round.bytes_sent += event.wan_bytes_sent;
      // The rounds' hashes are equal at all sites, so any one is shown.
      round.hash = event.theta_hash;
      if (const auto use = site.time().rounds.find(event.round); use != site.time().rounds.end()) {
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
    seconds += site.time().total.seconds(SpanCause::kEvaluate);
    all_seconds += site.time().total.total_seconds();
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

Table settings_table(std::string title, const std::vector<std::string>& lines) {
  Table table{
      .title = std::move(title), .header = {"setting", "value"}, .rows = {}, .left_columns = 2};
  for (const auto& line : lines) {
    auto [name, value] = setting_parts(line);
    table.rows.push_back({{std::move(name), std::move(value)}});
  }
  return table;
}

// Three digits: the estimate has no more. Large ones without an exponent.
std::string scale_text(std::optional<double> scale) {
  if (!scale) return "-";
  return *scale < 100 ? fmt::format("{:.3g}", *scale) : fmt::format("{:.0f}", *scale);
}

}  // namespace

std::vector<std::string> facts(const RunReport& report) {
  // The members of a run agree on these facts.
  const auto& run = report.newest_run();
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
  if (!run.rate_note.empty()) facts.push_back(run.rate_note);
  if (!report.noise_scales.empty()) {
    facts.push_back(fmt::format("gradient noise scale {} {}",
                                scale_text(report.noise_scales.rbegin()->second),
                                run.sequence_length == 1 ? run.unit : "sequences"));
  }
  return facts;
}

std::vector<HeadlineFigure> headline_figures(const RunReport& report) {
  const TimeUse all = report.total_time();
  const double total = all.total_seconds();
  const double waiting = total > 0 ? all.seconds(SpanCause::kWait) / total : 0;
  std::vector<HeadlineFigure> figures = {
      {percent_text(all.idle_fraction()), "idle device time"},
      {percent_text(waiting), "waiting for peers"},
      {loss_text(report.final_loss()),
       report.validation_losses.empty() ? "training loss" : "validation loss"}};
  if (report.final_accuracy()) {
    figures.push_back({accuracy_text(report.final_accuracy()), "accuracy"});
  }
  figures.push_back(
      {short_count_text(report.tokens_per_second()), report.unit() + "/s, all sites"});
  figures.push_back({bytes_text(report.wan_bytes_sent()), "sent over the WAN"});
  return figures;
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
          fmt::format("{:.1f}", site.time().total.idle_seconds())}});
    steps += site.steps;
    tokens += site.tokens;
    merged_tokens += site.merged_tokens;
    tokens_per_second += site.tokens_per_second();
    idle_seconds += site.time().total.idle_seconds();
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
    for (std::size_t device = 0; device < site.time().device_seconds.size(); ++device) {
      // A device is idle while the site's other devices, or the site itself, are not.
      const double seconds = site.time().device_seconds[device];
      table.rows.push_back({{site.site, site.device_name(device), fmt::format("{:.1f}", seconds),
                             fmt::format("{:.1f}", site.time().total.total_seconds() - seconds),
                             percent_text(site.time().device_idle_fraction(device))}});
    }
  }
  return table;
}

std::vector<std::string> plan_lines(const RunReport& report) {
  std::vector<std::string> lines;
  for (const auto& site : report.sites) {
    // A site may be lost before its first plan.
    if (!site.plan) continue;
    lines.push_back(
        fmt::format("{}, round {}: {}", site.site, site.plan->round, site.plan->reason));
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
    const double exposed = site.time().total.seconds(SpanCause::kWan);
    add_row(site.site, site.traffic, exposed, site.hidden_wan_seconds,
            site.time().total.total_seconds(), false);
    all_seconds += site.time().total.total_seconds();
    total += site.traffic;
    exposed_seconds += exposed;
    hidden_seconds += site.hidden_wan_seconds;
  }
  add_row("total", total, exposed_seconds, hidden_seconds, all_seconds, true);
  return table;
}

std::pair<std::string, std::string> setting_parts(const std::string& line) {
  const auto equals = line.find('=');
  if (equals == line.npos) return {line, ""};
  return {line.substr(0, equals), line.substr(equals + 1)};
}

Table chosen_settings_table(const RunReport& report) {
  return settings_table("Settings", report.newest_run().settings);
}

Table default_settings_table(const RunReport& report) {
  return settings_table("Settings at their defaults", report.newest_run().default_settings);
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
