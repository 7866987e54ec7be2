// One pass over each site's records, then one over the sites. What a report shows is computed here
// once, so that text, page and JSON cannot differ.
#include "trainer/report/report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "trainer/base/error.h"
#include "trainer/report/membership.h"
#include "trainer/telemetry/event_log.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace {

// A folder with an event file is one site's; otherwise its subfolders are sites. Sites of one
// machine share an output folder, and a folder that was fetched has one site.
std::vector<std::filesystem::path> find_event_files(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / kEventFile, error)) return {folder / kEventFile};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code ignored;  // a folder that cannot be read holds no site
    const auto file = entry.path() / kEventFile;
    if (std::filesystem::exists(file, ignored)) files.push_back(file);
  }
  if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
  if (files.empty()) {
    throw DataError(
        fmt::format("{}: no site's {} is in it or in a folder of it; name the `output` "
                    "folder of the sites' configs",
                    folder.string(), kEventFile));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add_link(const LinkEvent& event, LinkReport& link) {
  link.bytes_sent += event.bytes_sent;
  link.bytes_received += event.bytes_received;
  link.socket_bytes_sent += event.socket_bytes_sent;
  link.retransmitted_bytes += event.retransmitted_bytes;
  // The last known figures, not means: they say how fast the line is now.
  link.bits_per_second = event.bits_per_second;
  link.rtt_seconds = event.rtt_seconds;
}

// One pass over the records. A later `run` event begins a resumed process; what it repeats has been
// left out by without_abandoned().
SiteReport read_site(const std::filesystem::path& file, std::vector<std::string>& notes) {
  auto log = read_event_log(file);
  if (!log.note.empty()) notes.push_back(log.note);
  SiteReport site;
  site.records = without_abandoned(log.records);
  if (site.records.empty() || !std::holds_alternative<RunEvent>(site.records.front().event)) {
    throw DataError(fmt::format("{}: does not begin with a \"run\" event", file.string()));
  }
  site.site = site.records.front().site;
  for (const auto& record : site.records) {
    if (record.site != site.site) {
      throw DataError(
          fmt::format("{}: holds records of {} and {}", file.string(), site.site, record.site));
    }
    if (const auto* run = std::get_if<RunEvent>(&record.event)) {
      site.run = *run;
      // A site that was resumed has not ended, whatever its earlier process said.
      site.end.reset();
    } else if (const auto* step = std::get_if<StepEvent>(&record.event)) {
      ++site.steps;
      site.tokens += step->tokens;
      if (!site.first_loss) site.first_loss = step->loss;
      site.last_loss = step->loss;
    } else if (const auto* sync = std::get_if<SyncEvent>(&record.event)) {
      site.hidden_wan_seconds += std::max(0.0, sync->wan_seconds - sync->exposed_wan_seconds);
    } else if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
      site.rounds_done = std::max(site.rounds_done, round->round);
      ++site.rounds_worked;
      site.merged_tokens += round->tokens;
      site.traffic += {round->wan_bytes_sent, round->wan_bytes_received, round->socket_bytes_sent,
                       round->socket_bytes_received};
    } else if (const auto* link = std::get_if<LinkEvent>(&record.event)) {
      add_link(*link, link->peer ? site.links[*link->peer] : site.uplink);
    } else if (const auto* end = std::get_if<EndEvent>(&record.event)) {
      site.end = *end;
    }
  }
  site.time = account_time(site.records);
  add_losses(log.records, site.time);
  return site;
}

// Throws if the files do not belong together. Notes sites whose file is missing.
void check_sites(RunReport& report) {
  std::set<std::string> found;
  for (const auto& site : report.sites) {
    if (site.run.run != report.run) {
      throw DataError(fmt::format("{} belongs to run {}, {} to run {}: report one run at a time",
                                  report.sites.front().site, report.run, site.site, site.run.run));
    }
    if (!found.insert(site.site).second) {
      throw DataError(fmt::format("two event files are of site {}", site.site));
    }
  }
  // A missing site is a note and no error, as folders are often fetched one by one.
  for (const auto& name : report.site_names) {
    if (!found.contains(name)) {
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
  for (const auto& site : report.sites) {
    std::map<int64_t, EvaluationEvent> shares;  // a repeated evaluation of a round counts once
    std::size_t members = 0;                    // that validate, with records here
    for (const auto& record : site.records) {
      if (const auto* run = std::get_if<RunEvent>(&record.event)) {
        members = count_validating(report, run->sites);
      } else if (const auto* view = std::get_if<ViewEvent>(&record.event)) {
        members = count_validating(report, view->members);
      } else if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
        if (round->noise_scale) report.noise_scales[round->round] = *round->noise_scale;
        if (!round->train_loss) continue;
        auto& loss = training[round->round];
        loss.sum += *round->train_loss * static_cast<double>(round->tokens);
        loss.tokens += round->tokens;
      } else if (const auto* share = std::get_if<EvaluationEvent>(&record.event)) {
        shares[share->round] = *share;
        auto& expected = validation[share->round].expected_sites;
        expected = std::max(expected, members);
      }
    }
    for (const auto& [round, share] : shares) {
      auto& loss = validation[round];
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

Traffic& Traffic::operator+=(const Traffic& other) {
  wan_bytes_sent += other.wan_bytes_sent;
  wan_bytes_received += other.wan_bytes_received;
  socket_bytes_sent += other.socket_bytes_sent;
  socket_bytes_received += other.socket_bytes_received;
  return *this;
}

double LinkReport::retransmitted_share() const {
  // Emulated links have no sockets, so there the payload counts.
  const auto all = static_cast<double>(std::max(socket_bytes_sent, bytes_sent));
  return all > 0 ? static_cast<double>(retransmitted_bytes) / all : 0;
}

std::string SiteReport::device_name(std::size_t device) const {
  return device < run.devices.size() ? run.devices[device] : fmt::format("device {}", device);
}

std::string SiteReport::devices_text() const {
  return run.trains ? fmt::format("{}", fmt::join(run.devices, " + ")) : "server";
}

double SiteReport::tokens_per_second() const {
  const double seconds = time.total.total_seconds();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double SiteReport::exposed_wan_share() const {
  const double seconds = time.total.total_seconds();
  return seconds > 0 ? time.total.seconds(SpanCause::kWan) / seconds : 0;
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

RunReport build_report(const std::filesystem::path& run_folder) {
  RunReport report;
  for (const auto& file : find_event_files(run_folder)) {
    report.sites.push_back(read_site(file, report.notes));
  }
  report.site_names = names_of_run(report.sites);
  // Files come in the order of their folders' names; reports have the order of the run.
  std::ranges::stable_sort(report.sites, {}, [&](const SiteReport& site) {
    return std::ranges::find(report.site_names, site.site);
  });
  report.run = report.sites.front().run.run;
  check_sites(report);
  for (const auto& site : report.sites) {
    report.rounds_done = std::max(report.rounds_done, site.rounds_done);
  }
  collect_losses(report);
  return report;
}

namespace {

// A figure that was not measured is null and not absent, so that a reader knows that it exists.
Json or_null(const std::optional<double>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

Json links_json(const SiteReport& site) {
  Json links = Json::array();
  for (const auto& [peer, link] : site.links) {
    links.push_back({{"peer", peer},
                     {"bytes_sent", link.bytes_sent},
                     {"bytes_received", link.bytes_received},
                     {"bits_per_second", or_null(link.bits_per_second)},
                     {"rtt_seconds", or_null(link.rtt_seconds)},
                     {"retransmitted_share", link.retransmitted_share()}});
  }
  return links;
}

}  // namespace

std::vector<SyncChangeEvent> sync_changes(const RunReport& report) {
  std::vector<SyncChangeEvent> changes;
  for (const auto& record : report.sites.front().records) {
    if (const auto* change = std::get_if<SyncChangeEvent>(&record.event)) {
      changes.push_back(*change);
    }
  }
  return changes;
}

// Names and units are part of the interface for programs.
Json report_json(const RunReport& report) {
  Json sites = Json::array();
  for (const auto& site : report.sites) {
    const auto& use = site.time.total;
    const double wait = use.seconds(SpanCause::kWait);
    const double wan = use.seconds(SpanCause::kWan);
    Json entry{{"site", site.site},
               {"trains", site.run.trains},
               {"steps", site.steps},
               {"tokens", site.tokens},
               {"merged_tokens", site.merged_tokens},
               {"compute_seconds", use.compute_seconds},
               {"wait_seconds", wait},
               {"wan_seconds", wan},
               {"serve_seconds", use.serve_seconds()},
               {"other_seconds", std::max(0.0, use.idle_seconds() - wait - wan)},
               {"idle_fraction", use.idle_fraction()},
               {"hidden_wan_seconds", site.hidden_wan_seconds},
               {"exposed_wan_share", site.exposed_wan_share()},
               {"uplink_bits_per_second", or_null(site.uplink.bits_per_second)},
               {"links", links_json(site)},
               {"lost_seconds", site.time.lost_seconds},
               {"unaccounted_seconds", site.time.unexplained_seconds()},
               {"wall_seconds", site.time.wall_seconds}};
    for (std::size_t device = 0; device < site.time.device_seconds.size(); ++device) {
      entry["devices"].push_back({{"device", site.device_name(device)},
                                  {"compute_seconds", site.time.device_seconds[device]},
                                  {"idle_fraction", site.time.device_idle_fraction(device)}});
    }
    sites.push_back(std::move(entry));
  }
  Json json;
  json["rounds"] = report.rounds_done;
  json["sites"] = std::move(sites);
  json["final_loss"] = or_null(report.final_loss());
  if (const auto accuracy = report.final_accuracy()) json["final_accuracy"] = *accuracy;
  json["wan_bytes_sent"] = report.wan_bytes_sent();
  json["noise_scales"] = Json::array();
  for (const auto& [round, scale] : report.noise_scales) {
    json["noise_scales"].push_back({{"round", round}, {"noise_scale", scale}});
  }
  json["sync_changes"] = Json::array();
  for (auto& change : sync_changes(report)) json["sync_changes"].push_back(to_json(change));
  const auto membership = membership_of(report);
  json["views"] = views_json(membership);
  json["presence"] = presence_json(membership);
  return json;
}

}  // namespace farstep
