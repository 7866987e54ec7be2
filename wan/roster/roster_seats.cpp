// The roster's seats: who has a place in the run, and which site a connection is.
#include <fmt/format.h>

#include <algorithm>

#include "wan/roster/roster.h"

namespace farstep::wan {

// Sites that the run names come first, in the run's order, and keep their seats. Others follow by
// name.
void Roster::make_seat(const std::string& site) {
  if (seat_of_site(site) != nullptr) return;
  drop_spare_seats();
  const auto named = seats_.begin() + std::ssize(run_.sites);
  seats_.insert(std::ranges::lower_bound(named, seats_.end(), site, {}, &Seat::site), Seat(site));
}

// Otherwise every name that ever joined an open run would be kept.
void Roster::drop_spare_seats() {
  std::erase_if(seats_, [this](const Seat& seat) {
    return !run_.names(seat.site) && !is_present(seat) && !is_member(seat);
  });
}

int64_t Roster::num_places_taken(const std::string& newcomer) const {
  return std::ranges::count_if(seats_, [&](const Seat& seat) {
    return seat.site != newcomer && (is_present(seat) || is_member(seat));
  });
}

Roster::Seat* Roster::seat_of_connection(const std::string& connection) {
  const auto seat = std::find_if(seats_.begin(), seats_.end(), [&](const Seat& candidate) {
    return candidate.presence != Presence::kExpected && candidate.connection == connection;
  });
  return seat == seats_.end() ? nullptr : &*seat;
}

std::string Roster::site_at(const std::string& connection) const {
  const auto seat = std::ranges::find_if(seats_, [&](const Seat& candidate) {
    return is_present(candidate) && candidate.connection == connection;
  });
  return seat == seats_.end() ? "" : seat->site;
}

std::vector<std::string> Roster::connected_sites() const {
  std::vector<std::string> sites;
  for (const auto& [site, neighbour] : neighbours_) sites.push_back(site);
  for (const auto& seat : seats_) {
    if (is_present(seat)) sites.push_back(seat.site);
  }
  return sites;
}

const Roster::Seat* Roster::seat_of_site(const std::string& site) const {
  const auto seat = std::find_if(seats_.begin(), seats_.end(),
                                 [&](const Seat& candidate) { return candidate.site == site; });
  return seat == seats_.end() ? nullptr : &*seat;
}

std::vector<std::string> Roster::members_with(const Seat& seat) const {
  std::vector<std::string> names;
  for (const auto& other : seats_) {
    if (is_member(other) || other.site == seat.site) names.push_back(other.site);
  }
  return names;
}

bool Roster::is_member(const Seat& seat) const {
  return std::ranges::find(progress_.members, seat.site) != progress_.members.end();
}

bool Roster::has_present_member() const {
  return std::ranges::any_of(
      seats_, [this](const Seat& seat) { return is_present(seat) && is_member(seat); });
}

bool Roster::is_missed(const Seat& seat) const {
  return is_member(seat) && !is_present(seat) && !seat.loss.empty();
}

std::vector<std::string> Roster::site_names() const {
  std::vector<std::string> names;
  for (const auto& seat : seats_) names.push_back(seat.site);
  return names;
}

std::vector<std::string> Roster::missing_sites() const {
  std::vector<std::string> missing;
  for (const auto& seat : seats_) {
    if (seat.presence == Presence::kExpected && run_.names(seat.site)) missing.push_back(seat.site);
  }
  const auto there = std::ranges::count_if(seats_, is_present);
  const auto others = min_sites_ - there - std::ssize(missing);
  if (others > 0) missing.push_back(fmt::format("{} of any name", others));
  return missing;
}

}  // namespace farstep::wan
