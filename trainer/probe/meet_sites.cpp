#include "trainer/probe/meet_sites.h"

#include "heterogeneity/profile/links.h"
#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"
#include "trainer/peers/site_peers.h"

namespace farstep {

namespace {

std::optional<Meeting> meet(SitePeers& peers, const SiteConfig& own, const MeetingRequest& request,
                            Clock& clock, const std::stop_token& stop) {
  const auto& members = peers.view().members;
  const auto& deadlines = peers.run().deadlines;
  const heterogeneity::LinkProbe probe{.seconds = request.seconds};
  const double turn_seconds = longest_turn_seconds(static_cast<int>(members.size()), probe);
  const auto connected =
      peers.connect(peers.view(), turn_seconds + deadlines.transfer_stall_seconds);
  const auto links = measure_links(connected->transport(), probe, clock, stop);
  if (!links) {
    peers.leave(Outcome::kInterrupted, "interrupted", deadlines.leave_seconds);
    return std::nullopt;
  }
  // A site that is done keeps its connections until all are done: closing them earlier would look
  // like a lost peer.
  const auto key = [&](const std::string& site) {
    return fmt::format("{}/links/{}", request.command, site);
  };
  peers.store().put(key(own.name),
                    to_json(SiteNote{.links = *links,
                                     .clock_offset_seconds = peers.clock_offset_seconds(),
                                     .data_digest = request.data_digest})
                        .dump());
  Meeting meeting{.view = peers.view(), .run = peers.run(), .notes = {}};
  for (const auto& site : members) {
    meeting.notes.push_back(read_note(site, peers.store().get(key(site))));
  }
  peers.leave(Outcome::kDone, "", deadlines.join_seconds);
  return meeting;
}

}  // namespace

std::optional<Meeting> meet_sites(const LoadedSite& loaded, const MeetingRequest& request,
                                  Clock& clock, const std::stop_token& stop) {
  wan::JoinRequest join;
  join.run = loaded.run;
  join.facts["command"] = request.command;
  const auto peers = SitePeers::join(loaded, join, clock, stop, {}, request.wait_seconds);
  if (!peers) return std::nullopt;
  return peers->telling_failure([&] { return meet(*peers, loaded.site, request, clock, stop); });
}

}  // namespace farstep
