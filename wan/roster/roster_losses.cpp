// The roster when sites fail: who is lost, whom the run waits for, and when the members begin a
// sync anew.
#include <fmt/ranges.h>

#include <algorithm>

#include "wan/roster/roster.h"

namespace farstep::wan {

// One at a time: with every one that goes, fewer are left.
void Roster::leave_laggard_behind() {
  if (!has_begun() || verdict_ || pause_ || sync_->has_started()) return;
  if (std::ranges::count_if(seats_, is_present) <= min_sites_) return;
  for (auto& seat : seats_) {
    if (!is_present(seat) || !is_member(seat) || sync_->has_arrived(seat.site)) continue;
    if (!is_recent(seat.heard_seconds)) continue;  // its silence decides
    const auto limit_seconds = arrival_history_.limit_seconds(seat.site, progress_.members);
    if (!limit_seconds || now_seconds_ <= *limit_seconds) continue;
    lose(seat, Presence::kLost,
         fmt::format("it lives, but has not come to {}; usually it comes {:.0f} s after half of "
                     "the sites, and they have waited for longer than that and a round",
                     text(sync_->id()), arrival_history_.usual_seconds(seat.site)));
    return;
  }
}

bool Roster::seems_ended(const Seat& seat) const {
  return seat.is_replaced || (seat.is_suspected && !seat.is_awaited);
}

double Roster::patience_end_seconds(const Seat& seat) const {
  return seat.heard_seconds + (seems_ended(seat) ? suspect_seconds_ : lost_after_seconds_);
}

// A cut takes several sites at once, whose last signs of life came one after the other. If each was
// lost alone, the first would lose its place before the run turns out to have too few sites. Ended
// processes do not wait for sites that are silent for longer and may live.
void Roster::lose_silent_sites() {
  std::vector<Seat*> lost;
  double first_end_seconds = now_seconds_;
  bool have_all_ended = true;
  for (auto& seat : seats_) {
    if (!is_present(seat) || patience_end_seconds(seat) >= now_seconds_) continue;
    lost.push_back(&seat);
    first_end_seconds = std::min(first_end_seconds, patience_end_seconds(seat));
    have_all_ended &= seems_ended(seat);
  }
  const bool may_more_follow = std::ranges::any_of(seats_, [&](const Seat& seat) {
    const double end_seconds = patience_end_seconds(seat);
    const bool is_alike = seems_ended(seat) || !have_all_ended;
    return is_present(seat) && is_alike && end_seconds >= now_seconds_ &&
           end_seconds <= first_end_seconds + suspect_seconds_;
  });
  if (may_more_follow) return;
  for (auto* seat : lost) {
    const auto& last = seat->heartbeat;
    note_loss(*seat, Presence::kLost,
              fmt::format("silent for {:.1f} s; last heard of in round {}, step {}{}{}",
                          now_seconds_ - seat->heard_seconds, last.round, last.step,
                          last.activity.empty() ? "" : ": ", last.activity));
  }
  for (const auto* seat : lost) follow_loss(*seat, true);
}

void Roster::lose(Seat& seat, Presence presence, const std::string& reason, bool may_return) {
  note_loss(seat, presence, reason);
  follow_loss(seat, may_return);
}

void Roster::note_loss(Seat& seat, Presence presence, const std::string& reason) {
  if (!has_begun()) {
    seat = Seat(seat.site);  // its place is free for another try
  } else {
    seat.presence = presence;
    seat.loss = reason;
  }
}

void Roster::follow_loss(const Seat& seat, bool may_return) {
  // The first loss is the verdict. Sites that end because of it must not be named as causes.
  if (!has_begun() || verdict_) return;
  settle();
  // A run of which a site has done all rounds is at its end.
  const bool is_ending = std::ranges::any_of(seats_, [](const Seat& other) {
    return other.presence == Presence::kLeft && other.loss.empty();
  });
  const bool ends_run = is_missed(seat) && (!may_return || is_ending);
  if (!verdict_ && (ends_run || is_over())) {
    end_early(PeerLostMessage{seat.site, seat.loss},
              fmt::format("site {}: {}", seat.site, seat.loss));
  }
}

// A site that is lost while too few are left stays a member. So if its process comes back, as after
// an outage of its line, nothing is lost.
void Roster::settle() {
  if (!has_begun() || verdict_ || is_resting_) return;
  const auto num_there = std::ranges::count_if(seats_, is_present);
  if (has_present_member() && num_there >= min_sites_) {
    if (pause_ && waits_for_more()) return;
    if (pause_) resume();
    std::vector<std::string> missed;
    std::string reason;
    for (const auto& seat : seats_) {
      if (!is_missed(seat)) continue;
      reason += missed.empty() ? seat.loss : fmt::format("; site {}: {}", seat.site, seat.loss);
      missed.push_back(seat.site);
    }
    if (!missed.empty()) go_on_without(missed, reason);
    return;
  }
  if (pause_) pause_->enough_seconds.reset();
  const auto lost =
      std::ranges::find_if(seats_, [this](const Seat& seat) { return is_missed(seat); });
  if (lost == seats_.end()) {
    pause({.begin_seconds = now_seconds_,
           .site = {},
           .reason = fmt::format("{} of at least {} sites are there", num_there, min_sites_)});
  } else {
    pause({.begin_seconds = now_seconds_, .site = lost->site, .reason = lost->loss});
  }
}

// When a line is back, sites are heard one after the other.
bool Roster::waits_for_more() {
  if (!pause_->enough_seconds) pause_->enough_seconds = now_seconds_;
  const bool may_more_return = std::ranges::any_of(seats_, [this](const Seat& seat) {
    return is_missed(seat) && seat.presence == Presence::kLost;
  });
  return may_more_return && is_recent(*pause_->enough_seconds);
}

void Roster::pause(Pause pause) {
  if (pause_seconds_ == 0) {
    end_early(PeerLostMessage{pause.site, pause.reason}, pause.text());
  } else if (!pause_) {
    pause_ = std::move(pause);
  }
}

// Failures while a site was missing do not show that a connection is bad.
void Roster::resume() {
  pause_.reset();
  if (trouble_) trouble_->begin_seconds = now_seconds_;
  troubled_seconds_.reset();
}

void Roster::end_long_pause() {
  if (!pause_ || verdict_) return;
  if (pause_->enough_seconds) settle();
  if (!pause_) return;
  if (now_seconds_ - pause_->begin_seconds <= pause_seconds_) return;
  const auto waited = fmt::format("; the run has waited {:.0f} s for enough sites", pause_seconds_);
  end_early(PeerLostMessage{pause_->site, pause_->reason + waited}, pause_->text() + waited);
  if (!is_resting_) return;
  for (auto& seat : seats_) seat.presence = Presence::kLost;  // nobody is left to be told
}

// If nobody is heard of, it is the coordinator's own line that has failed, or all have gone.
void Roster::rest_if_all_are_silent() {
  if (is_resting_ || pause_seconds_ == 0 || !has_begun() || verdict_) return;
  const auto is_heard = [this](const Seat& seat) {
    return is_present(seat) && now_seconds_ - seat.heard_seconds <= suspect_seconds_;
  };
  if (std::ranges::none_of(seats_, is_present) || std::ranges::any_of(seats_, is_heard)) return;
  rest();
}

void Roster::come_back(Seat& seat) {
  seat.presence = Presence::kPresent;
  hear(seat);
  settle();
}

void Roster::go_on_without(const std::vector<std::string>& sites, const std::string& reason) {
  for (const auto& site : sites) {
    std::erase(progress_.members, site);
    arrival_history_.forget(site);
  }
  progress_.lost_site = sites.front();
  progress_.lost_reason = reason;
  progress_.lost_generation = progress_.generation + 1;
  progress_.joined_site.clear();
  begin_generation(fmt::format("site {}: {}", sites.front(), reason) + minority_text());
}

// The others may all live beyond a line that is cut, and train on.
std::string Roster::minority_text() const {
  std::vector<std::string> away;
  for (const auto& seat : seats_) {
    if (!is_present(seat) && !seat.loss.empty()) away.push_back(seat.site);
  }
  if (away.size() < progress_.members.size()) return "";
  return fmt::format(
      "; the run goes on with {}: the work of {} is not counted until they are back",
      progress_.members.size() == 1 ? "one site alone" : "half of the sites or fewer",
      fmt::join(away, ", "));
}

// A site has given up its place as a member and stays as a newcomer.
void Roster::make_newcomer(Seat& seat, const std::string& reason) {
  const bool has_other = std::ranges::any_of(seats_, [&](const Seat& other) {
    return is_present(other) && is_member(other) && other.site != seat.site;
  });
  if (has_other) {
    go_on_without({seat.site}, reason);
  } else {
    end_early(PeerLostMessage{seat.site, reason}, fmt::format("site {}: {}", seat.site, reason));
  }
}

// The last message of a site that has died may come after the one that accuses it, but not a
// heartbeat later.
bool Roster::do_all_live() const {
  return std::ranges::none_of(seats_, [&](const Seat& seat) {
    return is_member(seat) && seat.heard_seconds <= trouble_->begin_seconds + heartbeat_seconds_;
  });
}

// If enough are left, a link that does not come back costs no more time than a silent site. The
// last attempt, and what came before the first, count in that.
double Roster::link_patience_seconds() const {
  if (std::ranges::count_if(seats_, is_present) <= min_sites_) return join_seconds_;
  return std::min(join_seconds_,
                  std::max(connect_seconds_, lost_after_seconds_ - 2 * connect_seconds_));
}

// A connection that does not come back is as bad as a lost site.
void Roster::repeat_sync() {
  const auto [member, suspect] = worst_link();
  const bool is_first = !troubled_seconds_;
  if (is_first) troubled_seconds_ = trouble_->begin_seconds;
  const auto peer = suspect.empty() ? "another site" : "site " + suspect;
  if (!is_first && now_seconds_ - *troubled_seconds_ > link_patience_seconds()) {
    const bool may_return = false;  // it lives, so a pause would end at once
    for (auto& seat : seats_) {
      if (seat.site != (suspect.empty() ? member : suspect)) continue;
      link_reports_.sever(seat.site, seat.site == member ? "" : member, now_seconds_);
      lose(seat, Presence::kLost,
           fmt::format("the connections of site {} to {} have failed for {:.0f} s", member, peer,
                       now_seconds_ - *troubled_seconds_),
           may_return);
    }
    troubled_seconds_.reset();
    return;
  }
  const auto reason = fmt::format("a connection of site {} to {} broke", member, peer);
  progress_.lost_site.clear();
  progress_.lost_reason = reason;
  progress_.lost_generation = progress_.generation + 1;
  progress_.joined_site.clear();
  begin_generation(reason);
}

BrokenLink Roster::worst_link() const {
  const auto& suspects = trouble_->suspects;
  BrokenLink worst{suspects.begin()->first, {}};
  std::ptrdiff_t most = 1;
  for (const auto& site : progress_.members) {
    const auto accuses = [&](const auto& entry) { return entry.second == site; };
    const auto count = std::ranges::count_if(suspects, accuses);
    const bool is_spared = site == run_.host && count == most && !worst.suspect.empty();
    if (count < most || is_spared) continue;
    most = count;
    worst = {std::ranges::find_if(suspects, accuses)->first, site};
  }
  return worst;
}

// While one of the two is not heard, its line is down, and TCP goes on when that is back.
void Roster::note_standing(const Seat& seat, const std::string& suspect) {
  const Seat* other = seat_of_site(suspect);
  if (!is_member(seat) || !has_begun() || other == nullptr || !is_member(*other)) return;
  link_reports_.note_standing(seat.site, suspect, is_recent(other->heard_seconds), now_seconds_);
}

void Roster::break_standing_links() {
  if (!sync_->has_started()) return;
  for (const auto& [link, begin_seconds] : link_reports_.standing_for_long(now_seconds_)) {
    if (!trouble_) trouble_ = Trouble{begin_seconds, {}};
    trouble_->suspects.try_emplace(link.member, link.suspect);
  }
}

// The others notice a dead process by its connections, seconds before its silence shows it. A
// connection can also break between two living sites, so the accused one has to be silent too.
// Otherwise the members need new connections.
void Roster::on(Seat& seat, const SuspectMessage& message) {
  if (verdict_) {
    send(seat.connection, *verdict_);
  } else if (is_outdated(message.generation)) {
    send(seat.connection, view());
  } else if (message.is_standing) {
    note_standing(seat, message.site);
  } else {
    for (auto& other : seats_) {
      if (other.site == message.site) suspect(other);
    }
    if (!is_member(seat) || !has_begun() || !sync_->has_started()) return;
    if (!trouble_) trouble_ = Trouble{now_seconds_, {}};
    trouble_->suspects[seat.site] = message.site;
  }
}

// The end of a process breaks its connections while it is heard. A line that was cut breaks them
// after a silence, or when it is back: the site makes others, and has lost_after_seconds for that.
void Roster::on_broken(const std::string& connection, double now_seconds) {
  now_seconds_ = now_seconds;
  if (auto* seat = seat_of_connection(connection)) suspect(*seat);
  for (auto& [site, neighbour] : neighbours_) {
    if (neighbour.connection == connection) suspect(neighbour);
  }
}

void Roster::on_closed_line(const std::string& site, double now_seconds) {
  now_seconds_ = now_seconds;
  for (auto& seat : seats_) {
    if (seat.site == site) suspect(seat);
  }
  if (const auto found = neighbours_.find(site); found != neighbours_.end()) suspect(found->second);
}

void Roster::on(Seat& seat, const LeaveMessage& message) {
  send(seat.connection, GoodbyeMessage{});
  const bool ends_itself =
      message.outcome == Outcome::kDone || message.outcome == Outcome::kInterrupted;
  if (seat.is_on_trial && !ends_itself) link_reports_.sever(seat.site, "", now_seconds_);
  // Between two syncs nobody waits for this site.
  if (message.outcome == Outcome::kDone && has_begun() && !sync_->anyone_arrived()) {
    seat.presence = Presence::kLeft;
    dismiss_newcomers();
    return;
  }
  // To the others an early end is a loss, whatever its reason. A site that was interrupted may be
  // started again, as a machine that is taken away and given back. A failure would happen again.
  // But a newcomer that fails at once leaves the run as it was before.
  lose(seat, Presence::kLeft,
       fmt::format("it left the run: {}{}{}", name_of(message.outcome),
                   message.message.empty() ? "" : ": ", message.message),
       message.outcome == Outcome::kInterrupted || seat.is_on_trial);
}

}  // namespace farstep::wan
