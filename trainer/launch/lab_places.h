// The places in which `farstep launch` starts a run's sites: the sites of a running wan_lab.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wan/link/lab_file.h"

namespace farstep {

class LabPlaces {
 public:
  // Opens the lab of `lab_file` (its lab.json) for a run of `num_sites`. Throws ConfigError with
  // the remedy if the file is missing, the lab has too few sites or has ended, or the user is not
  // root.
  LabPlaces(const std::filesystem::path& lab_file, std::size_t num_sites);
  ~LabPlaces();
  LabPlaces(const LabPlaces&) = delete;
  LabPlaces& operator=(const LabPlaces&) = delete;

  // Returns the IP address of site `site`, counted from 0.
  const std::string& address(std::size_t site) const { return lab_.sites[site].address; }
  // Returns a descriptor of the site's network namespace, valid while this object lives.
  int network_namespace(std::size_t site) const { return namespaces_[site]; }

 private:
  wan::LabFile lab_;
  std::vector<int> namespaces_;
};

}  // namespace farstep
