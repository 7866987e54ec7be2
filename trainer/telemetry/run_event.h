// The event with which the file of a site begins: what the run is, and where its process starts.
// A value; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/json_fields.h"

namespace farstep {

struct RunEvent {
  static constexpr std::string_view kName = "run";
  static constexpr std::string_view kDoc =
      "a process of the site starts to train, or goes on after a resume";
  std::string version, run;
  int64_t site_id = 0;
  std::vector<std::string> sites, devices;
  int64_t parameters = 0, sequence_length = 0, rounds = 0, generation = 0;
  std::string unit = "tokens";
  int64_t start_round = 0, start_step = 0, start_fragments = 0;
  bool trains = true, reads_data = true;
  double clock_offset_seconds = 0;
  std::string rate_note = {};
  std::vector<std::string> settings = {}, default_settings = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("version", version, "version of Farstep", kRequired);
    visit("run", run, "name of the run", kRequired);
    visit("site_id", site_id, "the site's place in `sites`, from 0", required(at_least(0)));
    visit("sites", sites, "names of all sites of the run, in the order of their ids",
          required(at_least(1)));
    visit("devices", devices, "the site's devices, each as text", required(at_least(1)));
    visit("parameters", parameters, "parameters of the model", required(at_least(0)));
    visit("sequence_length", sequence_length, "tokens of one sequence; 1 where `unit` is images",
          required(at_least(1)));
    visit("unit", unit, "what the fields called tokens count, in all events: tokens or images",
          kRequired);
    visit("rounds", rounds, "outer rounds of the whole run", required(at_least(0)));
    visit("generation", generation, "version of the membership", required(at_least(0)));
    visit("start_round", start_round, "rounds that were done before this start",
          required(at_least(0)));
    visit("start_step", start_step, "steps of the round after those that were done before",
          required(at_least(0)));
    visit("start_fragments", start_fragments,
          "fragments of the round after those that were applied before", required(at_least(0)));
    visit("trains", trains, "false: the site serves alone, and has no steps of its own", kRequired);
    visit("reads_data", reads_data,
          "false: it serves alone, or the master sends it its batches; others validate", kRequired);
    visit("clock_offset_seconds", clock_offset_seconds,
          "add it to this site's times to get the coordinator's", kRequired);
    visit("rate_note", rate_note,
          "what a resume with other settings makes of the learning rate; empty: nothing");
    visit("settings", settings,
          "the settings of the run file that have no default or another value, each as --set takes "
          "it: outer.rounds=8; empty in a simulation");
    visit("default_settings", default_settings, "the run's other settings, likewise");
  }
};

}  // namespace farstep
