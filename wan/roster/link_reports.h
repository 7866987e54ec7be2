// What sites say of links between living members that carry nothing, and which sites have to wait
// because their links failed. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wan/protocol/deadlines.h"

namespace farstep::wan {

// A site that does not reach another one; `suspect` is empty if nobody knows which.
struct BrokenLink {
  std::string member, suspect;
};

class LinkReports {
 public:
  // A report ends if it is not repeated for `gap_seconds`, or a little longer.
  LinkReports(const Deadlines& deadlines, double gap_seconds);

  // A member says that its link to another one has not broken, and carries nothing. `is_heard`:
  // the other one lives.
  void note_standing(const std::string& member, const std::string& suspect, bool is_heard,
                     double now_seconds);
  // Returns the links that have carried nothing for long though both ends live, each with the time
  // since when.
  std::vector<std::pair<BrokenLink, double>> standing_for_long(double now_seconds);
  void forget_standing() { standing_.clear(); }

  // A site whose links to members failed has to wait before it joins again, each time longer: each
  // try stops all others. `peer` is the member that it did not reach; empty: not known.
  void sever(const std::string& site, const std::string& peer, double now_seconds);
  // Returns for how long a site has to wait still; nullopt if it may join.
  std::optional<double> wait_seconds(const std::string& site, double now_seconds) const;
  // Whether a severed site did not reach that member.
  bool has_missed(const std::string& site, const std::string& member) const;
  // All links of these sites work.
  void forget_severed(const std::vector<std::string>& sites);

 private:
  struct Standing {
    std::string suspect;
    double begin_seconds, newest_seconds;
  };
  struct Severed {
    std::string peer;
    double pause_seconds = 0, until_seconds = 0;
  };

  const double gap_seconds_, first_pause_seconds_, longest_pause_seconds_;
  std::map<std::string, Standing> standing_;  // by the member that says so
  std::map<std::string, Severed> severed_;    // by site
};

}  // namespace farstep::wan
