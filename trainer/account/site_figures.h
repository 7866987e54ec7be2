// The figures of one site, counted record by record: work, losses, time, traffic, links.
//
// The same counting feeds the report of a finished run and the page of one under way, so they
// cannot differ. Their memory is in proportion to the rounds, not to the steps. A value; not
// thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/account/step_curve.h"
#include "trainer/account/timeline.h"
#include "trainer/telemetry/event.h"
#include "trainer/telemetry/idle.h"
#include "trainer/telemetry/site_progress.h"

namespace farstep {

using Names = std::vector<std::string>;

// Payload as Farstep counts it, and bytes on the sockets as the kernel counts them.
struct Traffic {
  int64_t wan_bytes_sent = 0, wan_bytes_received = 0;
  int64_t socket_bytes_sent = 0, socket_bytes_received = 0;

  Traffic& operator+=(const Traffic& other);
};

// The link to one peer: sums over the rounds, and the last known speed and round trip.
struct LinkReport {
  int64_t bytes_sent = 0, bytes_received = 0, socket_bytes_sent = 0, retransmitted_bytes = 0;
  std::optional<double> bits_per_second, rtt_seconds;
  std::vector<double> speeds;  // bits a second, of each round in which it was known

  void add(const LinkEvent& event);
  // Returns the share of the bytes on the connections that was sent again.
  double retransmitted_share() const;
};

// A site's share of a validation, and the members of the run at that time.
struct ValidationShare {
  EvaluationEvent share;
  Names members;
};

struct SiteFigures {
  explicit SiteFigures(std::string name) : site(std::move(name)), progress(site) {}

  std::string site;
  RunEvent run;               // of its newest process
  SiteProgress progress;      // where it is, and what it does now
  int64_t rounds_done = 0;    // the newest round that it has committed
  int64_t rounds_worked = 0;  // the committed rounds in which it was there
  int64_t steps = 0, tokens = 0;
  int64_t merged_tokens = 0;  // of these, in rounds that it has committed
  Traffic traffic;
  std::map<std::string, LinkReport> links;      // by peer
  LinkReport uplink;                            // to all peers together
  double hidden_wan_seconds = 0;                // transfers while the site trained
  std::optional<double> first_loss, last_loss;  // of its first and its last step
  std::optional<EndEvent> end;  // of its newest process; empty if it runs or was killed
  // What the report of the run is made from, in the order of the file.
  std::vector<RoundEvent> rounds;
  std::map<int64_t, ValidationShare> validations;  // by round; of a repeated one the last
  std::vector<ViewEvent> views;
  std::vector<OutlierEvent> outliers;  // of all members
  std::vector<RiseEvent> rises;
  std::vector<Record> milestones;  // those of runs, views and rounds, in the coordinator's time
  std::vector<SyncChangeEvent> sync_changes;
  std::optional<PlanEvent> plan;              // the last one
  std::optional<CheckpointEvent> checkpoint;  // the last one
  StepCurve curve;
  Timeline timeline;

  // Counts the next record that counts. Takes constant time.
  void count(const Record& record);
  // States the run's time by RunSeconds, which has the abandoned records too.
  void set_run_seconds(double seconds) { account_.set_run_seconds(seconds); }

  const SiteTime& time() const { return account_.time(); }
  // Return when the site wrote its first and its last record, in unix seconds of the coordinator's
  // clock: those of the sites' own clocks cannot be compared. 0 if there is none.
  double first_seen() const;
  double last_seen() const;
  // Returns when its newest process started, likewise.
  double last_start() const;
  // Returns the device's description from the records, or its number.
  std::string device_name(std::size_t device) const;
  // Returns all of them; "server" if the site serves alone.
  std::string devices_text() const;
  // Returns tokens (or images) a second of the accounted time; 0 if there is none.
  double tokens_per_second() const;
  // Returns exposed WAN time as a share of the accounted time; 0 if there is none.
  double exposed_wan_share() const;

 private:
  void take(const RunEvent& event);
  void take(const PlanEvent& event) { plan = event; }
  void take(const StepEvent& event);
  void take(const SpanEvent&) {}
  void take(const SyncEvent& event);
  void take(const RoundEvent& event);
  void take(const LinkEvent& event);
  void take(const SyncChangeEvent& event) { sync_changes.push_back(event); }
  void take(const ViewEvent& event);
  void take(const OutlierEvent& event) { outliers.push_back(event); }
  void take(const RiseEvent& event) { rises.push_back(event); }
  void take(const EvaluationEvent& event);
  void take(const CheckpointEvent& event) { checkpoint = event; }
  void take(const EndEvent& event) { end = event; }

  TimeAccount account_;
  Names members_;  // by the last `run` or `view` record
};

}  // namespace farstep
