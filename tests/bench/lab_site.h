// What programs share that measure as several sites, each a process: on the loopback interface, or
// each inside a site of a running wan_lab.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/config/config_file.h"
#include "trainer/config/json_fields.h"
#include "wan/link/lab_file.h"
#include "wan/link/lanes.h"
#include "wan/transport/store.h"

namespace farstep {

// The options that all these programs have.
struct SiteOptions {
  int sites = 4;
  std::optional<int> given_lanes = {};
  std::string lab = {};

  void add_to(CLI::App& app, int least_sites) {
    app.add_option("--sites", sites)->check(CLI::Range(least_sites, 64));
    app.add_option("--lanes", given_lanes, "connections between two sites")
        ->check(CLI::Range(1, 64));
    app.add_option("--lab", lab, "lab.json of a running lab")->envname("FARSTEP_LAB");
  }
  int lanes() const { return given_lanes.value_or(static_cast<int>(wan::lanes_for(sites))); }
  std::vector<std::string> site_names() const {
    std::vector<std::string> names;
    for (int site = 0; site < sites; ++site) names.push_back(fmt::format("site{}", site));
    return names;
  }
};

// The lab that `path` describes; nothing if it is empty.
inline std::optional<wan::LabFile> lab_at(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return read_json<wan::LabFile>(load_json(path), path);
}

// Moves this process into site `rank` of the lab, if there is one; returns its address there.
inline std::string enter_site(const std::optional<wan::LabFile>& lab, int rank) {
  if (!lab) return "127.0.0.1";
  const auto& site = lab->sites.at(static_cast<std::size_t>(rank));
  const int fd = open(fmt::format("/proc/{}/ns/net", site.pid).c_str(), O_RDONLY | O_CLOEXEC);
  FARSTEP_CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "cannot enter site {} of the lab", rank);
  close(fd);
  return site.address;
}

// Returns when all sites have called it with the same `where`.
inline void meet(wan::Store& store, const std::string& where, int rank, int num_sites) {
  store.put(fmt::format("{}/{}", where, rank), "");
  for (int site = 0; site < num_sites; ++site) store.get(fmt::format("{}/{}", where, site));
}

// Returns what the sites measured; nullopt, and a message, if one has failed.
template <typename Measured>
std::optional<std::vector<Measured>> read_reports(std::span<const std::string> reports) {
  std::vector<Measured> measured;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (!reports[rank].starts_with('{')) {
      fmt::print(stderr, "site {} failed: {}\n", rank, reports[rank]);
      return std::nullopt;
    }
    measured.push_back(read_json<Measured>(Json::parse(reports[rank]), "a site's report"));
  }
  return measured;
}

}  // namespace farstep
