// A site's registration, its view and its connections. The coordinator may live in this process:
// then it starts before the member that registers at it, and ends after all others have left.
#include "trainer/peers/site_peers.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/peers/agreed_compute.h"
#include "trainer/peers/connected_exchange.h"
#include "trainer/peers/known_sites.h"
#include "wan/link/lanes.h"
#include "wan/sockets/local_address.h"
#include "wan/transport/gloo/gloo_release.h"

namespace farstep {

namespace {

// Returns the config of the site's own run file. Without a file it has the default deadlines, and
// only these are used.
RunConfig own_run(const LoadedSite& loaded) {
  return loaded.run ? run_config_from_json(*loaded.run, loaded.run_file) : RunConfig{};
}

std::vector<std::string> names_of(const std::vector<wan::FirstSite>& sites) {
  std::vector<std::string> names;
  for (const auto& site : sites) names.push_back(site.site);
  return names;
}

}  // namespace

void require_links_fit(const RunConfig& run, const SiteConfig& site) {
  const auto exchange = run.sync.exchange;
  if (uses_links(exchange, !site.network.keys.empty()) || !site.network.emulate) return;
  throw ConfigError(
      fmt::format("network.emulate: cannot slow down the connections that the run's "
                  "sync.exchange, {}, makes for itself; remove it, and try that exchange on the "
                  "network of scripts/wan_lab",
                  name_of(exchange)));
}

std::unique_ptr<SitePeers> SitePeers::join(const LoadedSite& loaded,
                                           const wan::JoinRequest& request, Clock& clock,
                                           const std::stop_token& stop,
                                           const MembershipFiles& files,
                                           std::optional<double> wait_seconds, bool took_part) {
  std::unique_ptr<SitePeers> peers(new SitePeers(loaded, clock, files, wait_seconds, took_part));
  const auto welcome = peers->register_site(request, stop);
  if (!welcome) return nullptr;
  peers->telling_failure([&] { peers->begin(*welcome); });
  return peers;
}

// Adds what may keep the coordinator from answering.
std::optional<wan::Welcome> SitePeers::register_site(wan::JoinRequest request,
                                                     const std::stop_token& stop) {
  request.facts["gloo_release"] = wan::gloo_release();
  try {
    return member_->join(request, stop);
  } catch (const PeerError& error) {
    if (coordinator_ || !secure_port_) throw;
    const auto reason = secure_port_->failure(site_.coordinators().front().site);
    if (reason.empty()) throw;
    const auto text = fmt::format("{} {}", error.what(), reason);
    if (dynamic_cast<const NotJoinedError*>(&error) != nullptr) throw NotJoinedError(text);
    throw PeerError(error.site(), text);
  }
}

void SitePeers::begin(const wan::Welcome& welcome) {
  welcome_ = welcome;
  // From here on only the coordinator's copy of the run counts; the site's own file has been
  // compared to it.
  run_ = run_config_from_json(welcome.run, std::string(kRunSource));
  view_ = {.generation = welcome.generation,
           .members = welcome.sites,
           .self = static_cast<std::size_t>(welcome.site_id)};
  require_links_fit(run_, site_);
  if (site_.coordinators().size() > 1) require_majority(run_, std::string(kRunSource));
  run_.inner.compute =
      is_newcomer() ? known_compute(run_.inner.compute, names_of(welcome.first_sites), *member_)
                    : agreed_compute(run_.inner.compute, site_, view_, *member_);
}

SitePeers::SitePeers(const LoadedSite& loaded, Clock& clock, const MembershipFiles& files,
                     std::optional<double> wait_seconds, bool took_part)
    : site_(loaded.site),
      clock_(clock),
      took_part_(took_part),
      secure_port_(SecurePort::open(site_, clock)) {
  const auto own = own_run(loaded);
  if (site_.hosted_coordinator()) start_coordinator(own, files);
  auto deadlines = own.deadlines;
  if (wait_seconds) deadlines.join_seconds = *wait_seconds;
  member_ = std::make_unique<wan::Member>(endpoints_of_member(), site_.name, deadlines, clock,
                                          files.term);
  if (!files.records.empty()) member_->send_records(files.records);
}

void SitePeers::start_coordinator(const RunConfig& run, const MembershipFiles& files) {
  const auto coordinators = site_.coordinators();
  const auto own = *site_.hosted_coordinator();
  const auto place = has_stand_bys() ? std::optional<int64_t>(own) : std::nullopt;
  auto served = served_run(run, place);
  served.host = site_.name;
  if (!secure_port_) {
    coordinator_ = std::make_unique<wan::Coordinator>(coordinators[own].endpoint, served,
                                                      run.deadlines, clock_, files.journal,
                                                      wan::CoordinatorVisitors{}, files.copies);
    return;
  }
  coordinator_ = std::make_unique<wan::Coordinator>(
      kBehindSecurePort, served, run.deadlines, clock_, files.journal,
      secure_port_->visitors(site_.name), files.copies);
  secure_port_->offer_coordinator(coordinator_->endpoint());
}

std::vector<wan::CoordinatorEndpoint> SitePeers::endpoints_of_member() {
  std::vector<wan::CoordinatorEndpoint> endpoints;
  const auto own = site_.hosted_coordinator();
  for (const auto& coordinator : site_.coordinators()) {
    endpoints.push_back({.endpoint = coordinator.endpoint, .shown = coordinator.endpoint});
    auto& endpoint = endpoints.back().endpoint;
    if (own == endpoints.size() - 1) {
      endpoint = wan::endpoint_here(coordinator_->endpoint());
    } else if (secure_port_) {
      endpoint = secure_port_->way_to_coordinator(coordinator);
    }
  }
  return endpoints;
}

// Else the others would wait for a coordinator that does not come back.
SitePeers::~SitePeers() {
  if (!coordinator_) return;
  const auto reason = fmt::format("site {}, which hosts the coordinator, ended", site_.name);
  if (has_stand_bys()) {
    coordinator_->hand_over(reason);
  } else {
    coordinator_->end_run(reason);
  }
}

int SitePeers::lanes(std::size_t members) const {
  // Otherwise the links only detect lost peers.
  if (!uses_links(run_.sync.exchange, secure_port_ != nullptr)) return 1;
  if (run_.sync.lanes) return static_cast<int>(*run_.sync.lanes);
  const auto planned = planned_lanes(run_, welcome_);
  return static_cast<int>(planned.value_or(wan::lanes_for(static_cast<int64_t>(members))));
}

std::unique_ptr<Links> SitePeers::connect(const View& view, double stall_seconds,
                                          wan::LinkStage stage, wan::KeptConnections* kept) {
  // Sites with one seed would lose the same packets at the same time.
  const LinkOptions options{.stage = stage,
                            .network = site_.network,
                            .lanes = lanes(view.size()),
                            .secure_port = secure_port_.get(),
                            .kept = kept,
                            .connect_seconds = run_.deadlines.connect_seconds,
                            .stall_seconds = stall_seconds,
                            .seed = static_cast<uint64_t>(run_.seed + welcome_.site_id)};
  return std::make_unique<Links>(view, options, *member_, clock_);
}

void SitePeers::open_exchanges() {
  const auto exchange = run_.sync.exchange;
  if (secure_port_ && !traits_of(exchange).over_links) {
    spdlog::info("sync.exchange {}: with keys it goes over the encrypted links of the sites",
                 name_of(exchange));
  }
  auto stage = wan::LinkStage::kStart;
  if (is_newcomer()) stage = took_part_ ? wan::LinkStage::kRejoin : wan::LinkStage::kJoin;
  links_ = std::make_unique<RenewedLinks>([this, stage](const View& view) mutable {
    const auto& deadlines = run_.deadlines;
    // A site that serves alone waits for the others' whole step, and one without data for the
    // master's validation. If one of them is lost meanwhile, the coordinator tells it.
    const double stall_seconds =
        run_.reads_data(site_.name)
            ? deadlines.transfer_stall_seconds
            : std::max(deadlines.transfer_stall_seconds, deadlines.laggard_seconds);
    auto links = connect(view, stall_seconds, stage, &kept_);
    stage =
        wan::LinkStage::kRun;  // the site has been reached: what fails from here on may come back
    links->make_exchange(run_.sync.exchange);
    return links;
  });
  // A newcomer has no links before its first sync.
  if (!is_newcomer()) links_->among(view_);
}

bool SitePeers::adopt(int64_t generation, const std::vector<std::string>& members) {
  if (generation <= view_.generation) return false;
  const auto self = std::ranges::find(members, view_.own_name()) - members.begin();
  view_ = {.generation = generation, .members = members, .self = static_cast<std::size_t>(self)};
  return true;
}

void SitePeers::abort_links() {
  if (links_) links_->abort(view_.own_name(), "this site ends");
}

// The coordinator is in this process. If it ended first, the other sites could not leave and would
// report a lost coordinator.
void SitePeers::leave(Outcome outcome, const std::string& message, double patience_seconds) {
  member_->leave(outcome, message);
  const bool is_needed =
      coordinator_ && coordinator_->serves_run() && (outcome == Outcome::kDone || !has_stand_bys());
  if (is_needed && !coordinator_->wait_until_over(patience_seconds)) {
    spdlog::warn("not all sites have left after {} s; the coordinator ends all the same",
                 patience_seconds);
  }
}

}  // namespace farstep
