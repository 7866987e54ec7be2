// Where `farstep launch` puts the sites of a run: the sites of a running wan_lab.
//
// Immutable once made; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wan/link/lab_file.h"

namespace farstep {

class LabPlaces {
 public:
  // Opens the lab that `lab_file` (its lab.json) speaks of, for a run of `num_sites`. Throws
  // ConfigError that says what to do if there is no such file, it has too few sites, the user is
  // not root, or the lab has ended.
  LabPlaces(const std::filesystem::path& lab_file, std::size_t num_sites);
  ~LabPlaces();
  LabPlaces(const LabPlaces&) = delete;
  LabPlaces& operator=(const LabPlaces&) = delete;

  // The IP address of site `site`, counted from 0.
  const std::string& address(std::size_t site) const { return lab_.sites[site].address; }
  // A descriptor of its network namespace, valid while this lives.
  int network_namespace(std::size_t site) const { return namespaces_[site]; }

 private:
  LabFile lab_;
  std::vector<int> namespaces_;
};

}  // namespace farstep
