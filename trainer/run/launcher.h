// Starts every site of a folder as a process of this machine, and watches them to their end.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace farstep {

struct LaunchRequest {
  std::filesystem::path folder;        // site configs *.json, but for *.profile.json and run.json
  std::vector<std::string> options;    // passed on to every `farstep train`
  std::vector<std::string> overrides;  // the --set values among them, to read the configs with
  std::filesystem::path lab;  // lab.json of a running wan_lab; empty: the machine's network
};

// Shows a bar a site on the terminal, passes a stop on to all sites as SIGINT, and returns 0 if
// every site ended well, else the exit code of the one that failed first. Each site's output goes
// to console.txt in its own folder; that of a site that failed is shown. A folder may hold
// coordinator.json, which is started as well. With a lab, the k-th site of the run file lives in
// the lab's k-th site, with its address, and a coordinator of its own beside the first. Throws
// ConfigError if the folder holds no site, a config is wrong, or the lab cannot take the sites.
int launch(const LaunchRequest& request, const std::stop_token& stop);

}  // namespace farstep
