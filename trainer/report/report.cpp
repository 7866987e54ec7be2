// What a report shows is counted in trainer/account, so that text, page and JSON cannot differ.
#include "trainer/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/account/membership.h"
#include "trainer/account/outliers.h"
#include "trainer/account/rises.h"
#include "trainer/account/run_follower.h"
#include "trainer/base/error.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

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

Json losses_json(const std::map<int64_t, double>& losses) {
  Json rows = Json::array();
  for (const auto& [round, loss] : losses) rows.push_back({{"round", round}, {"loss", loss}});
  return rows;
}

}  // namespace

RunReport build_report(const std::filesystem::path& run_folder) {
  if (find_event_files(run_folder).empty()) {
    throw DataError(
        fmt::format("{}: no site's {} is in it or in a folder of it; name the `output` "
                    "folder of the sites' configs",
                    run_folder.string(), kEventFile));
  }
  RunFollower follower({run_folder});
  const bool has_news = follower.poll();
  // The other sites have a report all the same, which names those that cannot be read.
  if (follower.report() == nullptr && !follower.unreadable().empty()) {
    throw DataError(follower.unreadable().front().reason);
  }
  if (!has_news) {
    throw DataError(fmt::format("{}: no site has recorded anything", run_folder.string()));
  }
  return follower.take_report();
}

const std::vector<SyncChangeEvent>& sync_changes(const RunReport& report) {
  return report.sites.front().sync_changes;
}

Json unreadable_json(std::span<const UnreadableFile> files) {
  Json list = Json::array();
  for (const auto& file : files) {
    list.push_back({{"site", file.site}, {"file", file.path.string()}, {"reason", file.reason}});
  }
  return list;
}

// Names and units are part of the interface for programs.
Json report_json(const RunReport& report) {
  Json sites = Json::array();
  for (const auto& site : report.sites) {
    const auto& use = site.time().total;
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
               {"lost_seconds", site.time().lost_seconds},
               {"unaccounted_seconds", site.time().unexplained_seconds()},
               {"wall_seconds", site.time().wall_seconds},
               {"outcome", site.end ? Json(name_of(site.end->outcome)) : Json(nullptr)},
               {"message", site.end ? site.end->message : ""}};
    for (std::size_t device = 0; device < site.time().device_seconds.size(); ++device) {
      entry["devices"].push_back({{"device", site.device_name(device)},
                                  {"compute_seconds", site.time().device_seconds[device]},
                                  {"idle_fraction", site.time().device_idle_fraction(device)}});
    }
    sites.push_back(std::move(entry));
  }
  Json json;
  json["rounds"] = report.rounds_done;
  json["sites"] = std::move(sites);
  json["final_loss"] = or_null(report.final_loss());
  if (const auto accuracy = report.final_accuracy()) json["final_accuracy"] = *accuracy;
  json["training_losses"] = losses_json(report.train_losses);
  json["validations"] = losses_json(report.validation_losses);
  for (auto& validation : json["validations"]) {
    const auto found = report.validation_accuracies.find(validation["round"].get<int64_t>());
    if (found != report.validation_accuracies.end()) validation["accuracy"] = found->second;
  }
  json["unreadable"] = unreadable_json(report.unreadable);
  json["wan_bytes_sent"] = report.wan_bytes_sent();
  json["noise_scales"] = Json::array();
  for (const auto& [round, scale] : report.noise_scales) {
    json["noise_scales"].push_back({{"round", round}, {"noise_scale", scale}});
  }
  json["sync_changes"] = Json::array();
  for (auto change : sync_changes(report)) json["sync_changes"].push_back(to_json(change));
  const auto membership = membership_of(report);
  json["views"] = views_json(membership);
  json["presence"] = presence_json(membership);
  json["outliers"] = Json::array();
  for (auto outlier : outliers_of(report)) json["outliers"].push_back(to_json(outlier));
  json["rises"] = Json::array();
  for (auto rise : rises_of(report)) json["rises"].push_back(to_json(rise));
  const auto& run = report.newest_run();
  json["settings"] = run.settings;
  json["default_settings"] = run.default_settings;
  return json;
}

}  // namespace farstep
