// Builds the report of a run from its sites' event files: idle time, losses, throughput, bytes.
//
// Figures include only records that without_abandoned() keeps. Pure functions, except that
// build_report() reads files; thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"
#include "trainer/telemetry/idle.h"

namespace farstep {

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

  // Returns the share of the bytes on the connections that was sent again.
  double retransmitted_share() const;
};

struct SiteReport {
  std::string site;
  RunEvent run;                 // of its newest process
  std::vector<Record> records;  // without abandoned ones
  SiteTime time;
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

  // Returns the device's description from the records, or its number.
  std::string device_name(std::size_t device) const;
  // Returns all of them; "server" if the site serves alone.
  std::string devices_text() const;
  // Returns tokens (or images) a second of the accounted time; 0 if there is none.
  double tokens_per_second() const;
  // Returns exposed WAN time as a share of the accounted time; 0 if there is none.
  double exposed_wan_share() const;
};

using Names = std::vector<std::string>;

struct RunReport {
  std::string run;
  int64_t rounds_done = 0;         // the most that any site has committed
  Names site_names;                // of all sites, in order of their ids
  std::vector<SiteReport> sites;   // those with records here, in the same order
  std::vector<std::string> notes;  // missing sites and unfinished lines
  // By round. Training loss: mean over the tokens of all sites. Validation loss: over the shares of
  // the members of that time, in rounds for which every share is present.
  std::map<int64_t, double> train_losses, validation_losses;
  // The share of the validation's targets that the model names right; in the same rounds, if it
  // counts them.
  std::map<int64_t, double> validation_accuracies;
  std::map<int64_t, double> noise_scales;  // by round in which it is known; equal at all sites

  // Returns what the counts called tokens count: "tokens" or "images".
  const std::string& unit() const { return sites.front().run.unit; }
  // Returns the last validation loss, or without validation the last round's training loss.
  std::optional<double> final_loss() const;
  std::optional<double> final_accuracy() const;
  int64_t wan_bytes_sent() const;
};

// Reads RUN_FOLDER/*/events.jsonl, or events.jsonl in the folder of one site. Throws DataError if
// there is none, if a file is not an event file, or if files belong to different runs.
RunReport build_report(const std::filesystem::path& run_folder);

// Returns the changes of how the sites sync, in order. They are the first site's, as all sites
// decide alike.
std::vector<SyncChangeEvent> sync_changes(const RunReport& report);

// Returns the output of `farstep report --json`; seconds are totals over the run.
Json report_json(const RunReport& report);

}  // namespace farstep
