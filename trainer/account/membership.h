// Who took part in which rounds of a run, and why that changed.
//
// Each site's records name the members of its rounds. The files of all sites together know most:
// while a site was away, the others went on. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

// Rounds from `first` to `last`.
struct RoundRange {
  int64_t first = 0, last = 0;
};

// The rounds in which a site was a member, as ranges in order. The round in which it joined without
// work does not count.
struct SitePresence {
  std::string site;
  std::vector<RoundRange> rounds;

  int64_t count() const;
};

struct Membership {
  std::vector<SitePresence> sites;  // every site that was a member, in the order of the run
  std::vector<RoundRange> known;    // rounds for which a site's records are here
  std::vector<ViewEvent> changes;   // in order, each once
};

// Returns the names of all sites of the run, in the order of their ids: also of those that are away
// or without records here.
Names names_of_run(const std::vector<SiteReport>& sites);

// Returns the membership of a run. It is empty if the run had one generation only.
Membership membership_of(const RunReport& report);

// Returns "1 to 4, 7 to 40", or "none".
std::string ranges_text(const std::vector<RoundRange>& rounds);

// Returns one line for each site: its rounds, and how many of the known ones it missed.
std::vector<std::string> presence_lines(const Membership& membership);

// Returns one line for each change, with the reason. Of many it keeps the newest.
std::vector<std::string> change_lines(const Membership& membership);

// The members `views` and `presence` of the JSON report; both are empty arrays for one generation.
Json views_json(const Membership& membership);
Json presence_json(const Membership& membership);

}  // namespace farstep
