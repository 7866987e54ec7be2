// A process enters a site of the lab by the namespace of the process that holds it. All namespaces
// are opened before the first site starts, so that a lab that has ended starts none.
#include "trainer/launch/lab_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/base/error.h"
#include "trainer/config/config_file.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// Returns a descriptor of the network namespace of process `pid`; -1 if there is none. Also -1 if
// it is this process's own namespace: then `pid` now belongs to another process.
int open_namespace(int64_t pid) {
  const int opened = ::open(fmt::format("/proc/{}/ns/net", pid).c_str(), O_RDONLY | O_CLOEXEC);
  struct stat theirs {};
  struct stat ours {};
  const bool is_another = opened >= 0 && ::fstat(opened, &theirs) == 0 &&
                          ::stat("/proc/self/ns/net", &ours) == 0 && theirs.st_ino != ours.st_ino;
  if (is_another) return opened;
  if (opened >= 0) ::close(opened);
  return -1;
}

wan::LabFile read_lab(const fs::path& file) {
  if (!fs::exists(file)) {
    throw ConfigError(
        fmt::format("--lab {}: no such file: start a lab with scripts/wan_lab and give the "
                    "lab.json of its folder",
                    file.string()));
  }
  return read_json<wan::LabFile>(load_json(file), file.string());
}

}  // namespace

LabPlaces::LabPlaces(const fs::path& lab_file, std::size_t num_sites) : lab_(read_lab(lab_file)) {
  if (lab_.sites.size() < num_sites) {
    throw ConfigError(
        fmt::format("--lab {}: the run has {} sites, the lab {}: start one with --sites {}",
                    lab_file.string(), num_sites, lab_.sites.size(), num_sites));
  }
  if (::geteuid() != 0) {
    throw ConfigError(fmt::format(
        "--lab {}: only root can start processes in the lab's network namespaces: run launch with "
        "sudo",
        lab_file.string()));
  }
  // Opened all at once: the lab may end before the last site starts, and then no site should have
  // begun.
  for (std::size_t i = 0; i < num_sites; ++i) {
    namespaces_.push_back(open_namespace(lab_.sites[i].pid));
    if (namespaces_.back() >= 0) continue;
    for (const int opened : namespaces_) ::close(opened);
    throw ConfigError(fmt::format(
        "--lab {}: process {}, which held the network namespace of site {}, is gone: the lab has "
        "ended; start it anew",
        lab_file.string(), lab_.sites[i].pid, i + 1));
  }
}

LabPlaces::~LabPlaces() {
  for (const int opened : namespaces_) ::close(opened);
}

}  // namespace farstep
