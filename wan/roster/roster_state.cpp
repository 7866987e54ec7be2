// What the members can tell again is left out. So the state changes with the membership and with
// committed syncs, and not with every arrival, and the journal is written as seldom.
#include "wan/roster/roster_state.h"

#include <algorithm>
#include <array>
#include <set>

#include "trainer/base/error.h"

namespace farstep::wan {

namespace {

template <typename Entries>
std::vector<std::string> sites_of(const Entries& entries) {
  std::vector<std::string> sites;
  for (const auto& entry : entries) sites.push_back(entry.site);
  return sites;
}

void require(bool condition, std::string_view what) {
  if (!condition) throw DataError(std::string(what));
}

}  // namespace

std::span<const std::string_view> enum_names(Presence) {
  static constexpr std::array<std::string_view, 4> kNames{"expected", "present", "left", "lost"};
  return kNames;
}

// The roster looks up members among the seats and arrivals by members, and does not check again.
void RosterState::require_fits(const ServedRun& served) const {
  if (!run) return;
  const auto seats = sites_of(run->seats);
  const std::set<std::string> sites(seats.begin(), seats.end());
  require(sites.size() == seats.size(), "a site has two seats");
  require(std::ranges::mismatch(served.sites, seats).in1 == served.sites.end() &&
              (served.is_open() || seats.size() == served.sites.size()),
          "its seats are not those of the run's sites");
  require(std::ranges::all_of(seats, is_site_name), "a site has a wrong name");
  const std::set<std::string> members(run->progress.members.begin(), run->progress.members.end());
  require(members.size() == run->progress.members.size(), "a site is a member twice");
  require(std::ranges::includes(sites, members), "a member has no seat");
  require(run->arrivals.empty() || sites_of(run->arrivals) == run->progress.members,
          "the arrivals are not those of its members");
  for (const auto& seat : run->seats) {
    require(seat.presence != Presence::kExpected, "a site has not joined");
    from_hex(seat.connection);
  }
  if (!run->verdict.empty()) decode_coordinator_message(run->verdict);
}

}  // namespace farstep::wan
