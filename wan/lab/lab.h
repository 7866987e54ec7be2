// A running lab: the sites' namespaces, the router between them, and what controls both.
//
// One thread moves all packets; it is to be the process's first and only one, and it blocks SIGINT,
// SIGTERM, SIGHUP and SIGCHLD for itself. The folder holds lab.json and the control socket while
// the lab runs, and counters.json afterwards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wan/lab/lab_spec.h"

namespace farstep {

struct LabRequest {
  LabSpec spec;
  std::filesystem::path folder;      // is there already
  std::vector<std::string> command;  // a program and its arguments; empty: run until a signal comes
};

// Builds the lab, runs the command in it with FARSTEP_LAB set to lab.json, and takes all down
// again. Returns the command's exit code (127 if it cannot be started, 128 + the signal that killed
// it), or 0 without one. SIGINT, SIGTERM and SIGHUP end the lab, or are passed on to the command
// and end the lab with it. The counters of all links go to stderr. Throws ConfigError if this
// machine or user cannot have a lab, or one runs in the folder; InternalError if a site's holder
// dies.
int run_lab(const LabRequest& request);

}  // namespace farstep
