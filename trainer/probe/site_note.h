// What a site tells the others when they meet before a run: its links, its clock and its data.
//
// Values and a pure function; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"

namespace farstep {

struct SiteNote {
  std::vector<heterogeneity::LinkProfile> links;
  double clock_offset_seconds = 0;
  std::string data_digest;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("links", links, "from the site to the others");
    visit("clock_offset_seconds", clock_offset_seconds,
          "the coordinator's time minus that of the site's clock");
    visit("data_digest", data_digest, "of its data, in hex digits; empty: it has none");
  }
};

// Reads a note of `site`. Throws PeerError that names it if the text is none. Note and message show
// nothing on a terminal but printable characters.
SiteNote read_note(const std::string& site, const std::string& text);

}  // namespace farstep
