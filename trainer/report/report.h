// What a run did, from the event files of its sites: idle time, losses, throughput, bytes.
//
// Figures are of the records that count (without_abandoned). Pure functions but for reading the
// files; thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"
#include "trainer/telemetry/idle.h"

namespace farstep {

// Payload as Farstep counted it, and bytes on the sockets as the kernel did.
struct Traffic {
  int64_t wan_bytes_sent = 0, wan_bytes_received = 0;
  int64_t socket_bytes_sent = 0, socket_bytes_received = 0;

  Traffic& operator+=(const Traffic& other);
};

// The way to one peer: sums over the rounds, and what was known last.
struct LinkReport {
  int64_t bytes_sent = 0, bytes_received = 0, socket_bytes_sent = 0, retransmitted_bytes = 0;
  std::optional<double> bits_per_second, rtt_seconds;

  // Of the bytes on the connections, those that had to be sent again.
  double retransmitted_share() const;
};

struct SiteReport {
  std::string site;
  RunEvent run;                 // of its newest process
  std::vector<Record> records;  // those that count
  SiteTime time;
  int64_t rounds_done = 0, steps = 0, tokens = 0;
  Traffic traffic;
  std::map<std::string, LinkReport> links;      // by peer
  LinkReport uplink;                            // to all peers together
  double hidden_wan_seconds = 0;                // of the syncs, while the site trained
  std::optional<double> first_loss, last_loss;  // of its first and its last step
  std::optional<EndEvent> end;  // of its newest process; none while it runs or if it was killed

  // What the device is, as far as the records tell.
  std::string device_name(std::size_t device) const;
  // Tokens a second of the time that the account explains; 0 if there is none.
  double tokens_per_second() const;
  // The share of the time that the account explains that is exposed WAN time; 0 if there is none.
  double exposed_wan_share() const;
};

struct RunReport {
  std::string run;
  int64_t rounds_done = 0;         // committed by the site that is furthest
  std::vector<SiteReport> sites;   // in the order of their ids
  std::vector<std::string> notes;  // what is missing or was left out
  // By round. Training: mean over the tokens of all sites; validation: all sites' shares together,
  // of the rounds of which every share is there.
  std::map<int64_t, double> train_losses, validation_losses;

  // The last validation loss, else the last round's training loss.
  std::optional<double> final_loss() const;
  int64_t wan_bytes_sent() const;
};

// Reads RUN_FOLDER/*/events.jsonl, or the events.jsonl of one site's own folder. Throws DataError
// if there is none, if a file is not an event file, or if they are of different runs.
RunReport build_report(const std::filesystem::path& run_folder);

// How the sites have changed the way they sync, in order; of the first site, as all decide alike.
std::vector<SyncChangeEvent> sync_changes(const RunReport& report);

// The report as `farstep report --json` prints it; seconds are totals over the run.
Json report_json(const RunReport& report);

}  // namespace farstep
