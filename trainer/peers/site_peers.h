// A site's peers over the network: the coordinator (if this site hosts it), the membership, and the
// links of the newest view.
//
// Belongs to one thread, except is_paused() and the objects that rendezvous() and exchanges()
// return.
#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/base/clock.h"
#include "trainer/peers/links.h"
#include "trainer/peers/peers.h"
#include "trainer/peers/renewed_links.h"
#include "trainer/peers/secure_port.h"
#include "trainer/settings/load_config.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"
#include "wan/transport/gloo/kept_connections.h"

namespace farstep {

// The source that messages name for a run config from the network.
inline constexpr std::string_view kRunSource = "the run that the coordinator handed out";

// Throws ConfigError if the site's links cannot be what the run asks for.
void require_links_fit(const RunConfig& run, const SiteConfig& site);

// Files of the control plane; empty: none. The first two let a run outlive its coordinator's
// process.
struct MembershipFiles {
  std::filesystem::path journal;  // of the coordinator, where it is hosted
  std::filesystem::path term;     // the newest term of a coordinator that the site knows
  std::filesystem::path records;  // the site's own, which the coordinator may copy
  std::filesystem::path copies;   // the coordinator's folder of these, where it is hosted
};

class SitePeers : public Peers {
 public:
  // Starts the coordinator if this site hosts it, joins with `request` and waits for all sites.
  // Returns null if a stop was requested before all had joined. `wait_seconds`: how long to wait
  // for the others, if not join_seconds of the own run file; then it throws NotJoinedError.
  // `took_part`: this process did so before, and so links that fail may come back. `clock` must
  // outlive this. Throws ConfigError, DataError or PeerError.
  static std::unique_ptr<SitePeers> join(const LoadedSite& loaded, const wan::JoinRequest& request,
                                         Clock& clock, const std::stop_token& stop,
                                         const MembershipFiles& files = {},
                                         std::optional<double> wait_seconds = {},
                                         bool took_part = false);
  // A coordinator that this site hosts ends too, and sends the other sites to its stand-bys, or
  // ends the run.
  ~SitePeers() override;

  // Makes links to the members of `view`, without an exchange. A transfer fails after
  // `stall_seconds` without progress. All members must call it at the same time. Throws as Links().
  std::unique_ptr<Links> connect(const View& view, double stall_seconds,
                                 wan::LinkStage stage = wan::LinkStage::kStart,
                                 wan::KeptConnections* kept = nullptr);
  // Makes links and exchange of the present view, and from here on those of each newer one. Called
  // as connect(), before exchanges and figures of links are used. A newcomer's first links are
  // those of the view in which it becomes a member. Throws as Links() at the start.
  void open_exchanges();

  const View& view() const override { return view_; }
  bool adopt(int64_t generation, const std::vector<std::string>& members) override;
  std::vector<wan::ViewMessage> take_new_views() override {
    return member_->take_views(view_.generation);
  }
  std::vector<wan::DonateMessage> take_state_requests(int64_t round) override {
    return member_->take_state_requests(round);
  }
  wan::Rendezvous& rendezvous() override { return *member_; }
  outer_optimizer::Exchanges& exchanges() override { return *links_; }
  LinkUse uplink() const override { return links_->uplink(); }
  std::vector<LinkUse> links() const override { return links_->links(view_); }
  void measure_links() override { links_->measure(); }
  void set_activity(int64_t round, int64_t step, const std::string& text) override {
    member_->set_activity(round, step, text);
  }
  void report(const wan::MetricsMessage& metrics) override { member_->report(metrics); }
  bool has_failed() const override { return member_->has_failed(); }
  void throw_if_failed() const override { member_->throw_if_failed(); }

  // The run config from the coordinator; inner.compute is the type that the sites agreed on.
  const RunConfig& run() const { return run_; }
  const wan::Welcome& welcome() const { return welcome_; }
  // Whether this site has joined a run that goes on.
  bool is_newcomer() const { return welcome_.is_newcomer; }
  // Of a newcomer: Member::fetch().
  std::optional<wan::HandoverMessage> fetch(const wan::FetchMessage& request,
                                            const std::stop_token& stop) {
    return member_->fetch(request, stop);
  }
  // Of a donor: Member::offer_state(). Any thread may call it.
  bool offer_state(const wan::OfferMessage& offer, const std::stop_token& stop) {
    return member_->offer_state(offer, stop);
  }
  // The port of secure links; null if they are plain.
  SecurePort* secure_port() { return secure_port_.get(); }
  // The store through which the members exchange values.
  wan::Store& store() { return *member_; }
  double clock_offset_seconds() const { return member_->clock_offset_seconds(); }
  // Whether the run waits for lost sites, by the coordinator's last answer.
  bool is_paused() const { return member_->is_paused(); }

  // Returns what `work` returns. If it throws, the other sites hear the reason before this does.
  template <typename Work>
  auto telling_failure(Work&& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      leave(Outcome::kFailed, error.what(), run_.deadlines.leave_seconds);
      throw;
    }
  }

  // Aborts all transfers on the links.
  void abort_links();
  // Leaves the run with `outcome` and `message`. A site that hosts the coordinator waits until the
  // other sites have left, at most `patience_seconds`, unless they go on at a stand-by.
  void leave(Outcome outcome, const std::string& message, double patience_seconds);

 private:
  SitePeers(const LoadedSite& loaded, Clock& clock, const MembershipFiles& files,
            std::optional<double> wait_seconds, bool took_part);
  bool has_stand_bys() const { return site_.coordinators().size() > 1; }
  void start_coordinator(const RunConfig& run, const MembershipFiles& files);
  // Returns where this site's member finds the coordinators.
  std::vector<wan::CoordinatorEndpoint> endpoints_of_member();
  std::optional<wan::Welcome> register_site(wan::JoinRequest request, const std::stop_token& stop);
  // Takes over the run and the view that the coordinator handed out.
  void begin(const wan::Welcome& welcome);
  // Returns the number of connections between two sites, of which there are `members`.
  int lanes(std::size_t members) const;

  const SiteConfig site_;
  Clock& clock_;
  const bool took_part_;
  std::unique_ptr<SecurePort> secure_port_;        // null in plain mode; outlives what uses it
  std::unique_ptr<wan::Coordinator> coordinator_;  // null unless this site hosts it
  std::unique_ptr<wan::Member> member_;
  wan::Welcome welcome_;
  RunConfig run_;
  View view_;
  wan::KeptConnections kept_;            // of links_ to the next ones
  std::unique_ptr<RenewedLinks> links_;  // null before open_exchanges()
};

}  // namespace farstep
