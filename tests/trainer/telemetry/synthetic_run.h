// A made-up run whose times are known by hand: every site trains `steps` steps of its own length,
// the faster ones wait for the slowest, then all sync, validate and save.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

struct SyntheticRun {
  std::string name = "synthetic";
  std::vector<double> step_seconds = {0.239, 0.25, 0.104, 0.201};  // a site each
  int64_t rounds = 10, steps = 100;
  double start = 1'700'000'000;
  double data_seconds = 0.001;  // before every step
  double wan_seconds = 1.5, outer_seconds = 0.25, evaluate_seconds = 0.5, checkpoint_seconds = 0.25;

  // "node1" for site 0.
  std::string site_name(std::size_t site) const { return "node" + std::to_string(site + 1); }
  double training_seconds(std::size_t site) const;  // of a round, without waiting for data
  double slowest_seconds() const;
  double wait_seconds(std::size_t site) const { return slowest_seconds() - training_seconds(site); }
  double round_seconds() const;

  // The records of one site; its clock is `clock_offset_seconds` behind the coordinator's.
  std::vector<Record> records(std::size_t site, double clock_offset_seconds = 0) const;
  // FOLDER/<site>/events.jsonl of every site.
  void write(const std::filesystem::path& folder) const;
};

// Writes an event file, with its folder.
void write_events(const std::filesystem::path& file, const std::vector<Record>& records);

}  // namespace farstep
