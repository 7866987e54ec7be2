// What needs a person's attention in a run, by its figures. A pure function; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

enum class AlarmKind { kSiteGone, kSlowLink, kLossRises, kBadDelta };
std::span<const std::string_view> enum_names(AlarmKind);

struct Alarm {
  AlarmKind kind = AlarmKind::kSiteGone;
  std::string subject;  // the site, the link as "node1 to node2", or empty
  std::string text;     // a sentence without a full stop

  // Whether it is of the same trouble, which may have grown meanwhile.
  bool is_same(const Alarm& other) const { return kind == other.kind && subject == other.subject; }
};

// Returns the alarms of a run at `now`, unix seconds of the coordinator's clock:
//   - a site is gone: it failed, it lost the others, they lost it and it has not come back, or it
//     trains and wrote nothing for a minute and ten of its steps;
//   - a link is slow: less than half of what it usually was, in at least five rounds;
//   - a delta is bad: one of a site was left out in the last ten rounds;
//   - the loss rises: the mean of its last three values is 5 % above the least such mean before.
// A run that is over has no slow links.
std::vector<Alarm> alarms_of(const RunReport& report, double now);

// Whether an alarm says that a site is gone which has not ended by itself.
bool is_gone(const SiteReport& site, std::span<const Alarm> alarms);

// Whether all sites with records here have ended.
bool is_over(const RunReport& report);

}  // namespace farstep
