// A running lab: the sites' namespaces, the router between them, and the control of both.
//
// One thread moves all packets. It must be the process's first and only thread; it blocks SIGINT,
// SIGTERM, SIGHUP and SIGCHLD for itself. The folder has lab.json and the control socket while the
// lab runs, and counters.json afterwards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wan/lab/lab_spec.h"

namespace farstep::wan {

struct LabRequest {
  LabSpec spec;
  std::filesystem::path folder;      // must exist
  std::vector<std::string> command;  // a program and its arguments; empty: run until a signal comes
};

// Builds the lab, runs the command in it with FARSTEP_LAB set to lab.json, and removes the lab.
// Returns the command's exit code: 127 if it cannot be started, 128 + the signal that killed it.
// Returns 0 without a command.
//
// SIGINT, SIGTERM and SIGHUP end the lab; with a command, they are passed on to it and end both.
// The counters of all links go to stderr. Throws ConfigError if this machine or user cannot run a
// lab, or a lab runs in the folder already; InternalError if a site's holder dies.
int run_lab(const LabRequest& request);

}  // namespace farstep::wan
