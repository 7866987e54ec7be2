// Where a program that measures runs as one site of several: on the loopback interface, or inside a
// site of a running wan_lab.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>

#include "trainer/base/error.h"
#include "trainer/config/config_file.h"
#include "trainer/config/json_fields.h"
#include "wan/link/lab_file.h"
#include "wan/transport/store.h"

namespace farstep {

// The lab that `path` describes; nothing if it is empty.
inline std::optional<LabFile> lab_at(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return read_json<LabFile>(load_json(path), path);
}

// Moves this process into site `rank` of the lab, if there is one; returns its address there.
inline std::string enter_site(const std::optional<LabFile>& lab, int rank) {
  if (!lab) return "127.0.0.1";
  const auto& site = lab->sites.at(static_cast<std::size_t>(rank));
  const int fd = open(fmt::format("/proc/{}/ns/net", site.pid).c_str(), O_RDONLY | O_CLOEXEC);
  FARSTEP_CHECK(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "cannot enter site {} of the lab", rank);
  close(fd);
  return site.address;
}

// Returns when all sites have called it with the same `where`.
inline void meet(Store& store, const std::string& where, int rank, int num_sites) {
  store.put(fmt::format("{}/{}", where, rank), "");
  for (int site = 0; site < num_sites; ++site) store.get(fmt::format("{}/{}", where, site));
}

}  // namespace farstep
