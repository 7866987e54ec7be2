// Starts every site of a folder as a process of this machine, and waits until all have ended.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/watch/watch_service.h"

namespace farstep {

struct LaunchRequest {
  std::filesystem::path folder;        // site configs *.json, but for *.profile.json and run.json
  std::vector<std::string> options;    // passed on to every `farstep train`
  std::vector<std::string> overrides;  // the --set values among `options`, to read the configs with
  // Passes on --resume=auto too; --resume if sites have all of their run and others do not, which
  // need them; and starts nothing if all have.
  bool resumes_if_possible = false;
  std::optional<WatchOptions> watch;  // how the run's page is served meanwhile; nullopt: not
  std::filesystem::path lab;          // lab.json of a running wan_lab; empty: the machine's network
};

// Runs all sites with one progress bar per site on the terminal. A stop is passed on to all sites
// as SIGINT. Returns 0 if every site succeeded, else the exit code of the first that failed.
//
// After a failure the other sites save and end, or go on while the run's min_sites are left. Those
// that wait for the failed one, and a coordinator without sites, get SIGINT as soon as members
// would have noticed the loss. Who still runs when the deadlines for saving and leaving
// have passed too, gets SIGKILL. If the launcher itself is killed, the sites get SIGHUP: they save
// and end.
//
// Each site's output goes to console.txt in its own folder; the output of a failed site is shown. A
// folder may hold coordinator.json; the coordinator is then started too. With a lab, the k-th site
// of the run file runs in the lab's k-th site and has its address. A separate coordinator runs
// beside the first site. Throws ConfigError if the folder holds no site, a config is wrong, or the
// lab cannot run the sites.
int launch(const LaunchRequest& request, const std::stop_token& stop);

}  // namespace farstep
