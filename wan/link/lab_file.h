// lab.json: a running wan_lab's description of itself, so that other programs can enter its sites.
//
// A config struct: the lab writes it, `farstep launch` and scripts/wan_lab read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/fields.h"

namespace farstep::wan {

inline constexpr std::string_view kLabFile = "lab.json";  // in the lab's folder

struct LabSite {
  int64_t pid = 0;
  std::string address;
  std::string interface;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("pid", pid, "process that holds the site's network namespace", required(at_least(1)));
    visit("address", address, "the site's IP address", kRequired);
    visit("interface", interface, "the interface that has it", kRequired);
  }
};

struct LabFile {
  std::vector<LabSite> sites;
  std::string control;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sites", sites, "the sites, in order", required(at_least(1)));
    visit("control", control, "unix socket that takes commands", kRequired);
  }
};

}  // namespace farstep::wan
