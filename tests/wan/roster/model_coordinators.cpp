// The coordinators of the model: their messages, deaths and returns.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/wan/roster/model_world.h"

namespace farstep::wan {

bool ModelWorld::is_stale(std::size_t place) const {
  return has_stand_bys() && coordinators_[place].roster->term() < serving_term_;
}

// ---- faults ----

void ModelWorld::harm_coordinator() {
  auto place = static_cast<std::size_t>(chance_.below(std::ssize(coordinators_)));
  // Mostly the one that serves the run.
  for (std::size_t i = 0; i < coordinators_.size() && !chance_.one_in(4); ++i) {
    if (!is_stale(place) && coordinators_[place].roster->has_begun()) break;
    place = (place + 1) % coordinators_.size();
  }
  auto& coordinator = coordinators_[place];
  if (coordinator.is_down || coordinator.stands_still || coordinator.roster->is_over()) return;
  const auto how = has_stand_bys() ? chance_.below(4) : chance_.below(2);
  if (how == 0) {
    // Half of its deaths come when the journal is written and the answers have not left.
    coordinator.dies_before_answers = true;
  } else if (how == 1) {
    lose_coordinator(place);
  } else {
    stop_coordinator(place);
  }
}

void ModelWorld::lose_coordinator(std::size_t place) {
  auto& coordinator = coordinators_[place];
  tell("--", "coordinator", fmt::format("{} dies", place));
  coordinator.is_down = true;
  coordinator.last_change = now_seconds_;
  ++num_coordinators_lost_;
  if (chance_.one_in(2)) coordinator.waiting.emplace();
  // The last that lives has to come back.
  const bool is_last = std::ranges::all_of(coordinators_, &ModelCoordinator::is_down);
  if (has_stand_bys() && !is_last && chance_.one_in(3)) return;
  after(chance_.between(0.1, has_stand_bys() ? 20 : 8),
        [this, place] { restart_coordinator(place); });
}

// It stands still and wakes later, or ends on purpose.
void ModelWorld::stop_coordinator(std::size_t place) {
  auto& coordinator = coordinators_[place];
  if (chance_.one_in(3)) {
    tell("--", "coordinator", fmt::format("{} hands over", place));
    deliver(place, coordinator.roster->hand_over("a stop"));
    lose_coordinator(place);
    return;
  }
  const double seconds = chance_.between(1, 30);
  tell("--", "coordinator", fmt::format("{} stands still for {:.2f} s", place, seconds));
  coordinator.stands_still = true;
  coordinator.waiting.emplace();
  after(seconds, [this, place] {
    tell("--", "coordinator", fmt::format("{} wakes", place));
    coordinators_[place].stands_still = false;
    coordinators_[place].last_change = now_seconds_;
    go_on(place);
  });
}

RosterState ModelWorld::state_after_restart(const ModelCoordinator& coordinator) {
  auto state = coordinator.roster->state();
  if (chance_.one_in(4)) state = read_json<RosterState>(to_json(state), "the journal");
  // Without its journal. A second one of a run without stand-bys could begin the generations again
  // that nobody has heard of, which the model cannot tell apart.
  if (chance_.one_in(3) && !was_blank_) {
    if (has_stand_bys()) return {};
    state = {};
    is_blank_ = was_blank_ = true;
  }
  state.require_fits(coordinator.run);
  // Of a run that all have left, nothing is to go on.
  is_abandoned_ |= state.run && std::ranges::none_of(state.run->seats, [](const auto& seat) {
                     return seat.presence == Presence::kPresent;
                   });
  state.term = coordinator.run.term_after(state.term);
  return state;
}

void ModelWorld::restart_coordinator(std::size_t place) {
  auto& coordinator = coordinators_[place];
  const auto state = state_after_restart(coordinator);
  coordinator.roster = std::make_unique<Roster>(coordinator.run, deadlines_, state, now_seconds_);
  tell("--", "coordinator",
       fmt::format("{} is back in term {}{}", place, state.term,
                   state.run ? "" : ", without a run"));
  coordinator.is_down = false;
  coordinator.last_change = now_seconds_;
  for (auto& [key, link] : links_) {
    if (key.second != place) continue;
    link.last_fault = std::max(link.last_fault, now_seconds_);
    end_connection(key.first, place, 0);
  }
  go_on(place);
}

void ModelWorld::go_on(std::size_t place) {
  const auto waiting =
      std::exchange(coordinators_[place].waiting, std::nullopt).value_or(std::vector<Waiting>());
  for (const auto& [from, message, epoch] : waiting) arrive(*from, place, message, epoch);
}

// ---- messages ----

void ModelWorld::send(const ModelSite& from, std::size_t place, const SiteMessage& message) {
  auto& way = link(from.connection(), place);
  const auto arrives = arrival_seconds(way, way.newest_up);
  if (!arrives) return;
  // Only what a site repeats can come twice. The roster counts heartbeats.
  const bool is_repeated = !std::holds_alternative<HeartbeatMessage>(message) &&
                           repeats_one_in_ > 0 && chance_.one_in(repeats_one_in_);
  for (int copy = 0; copy < (is_repeated ? 2 : 1); ++copy) {
    after(*arrives - now_seconds_, [this, &from, place, message, epoch = way.epoch] {
      arrive(from, place, message, epoch);
    });
  }
}

void ModelWorld::arrive(const ModelSite& from, std::size_t place, const SiteMessage& message,
                        int64_t epoch) {
  auto& coordinator = coordinators_[place];
  if (link(from.connection(), place).epoch != epoch || is_abandoned_) return;
  if (coordinator.is_down || coordinator.stands_still) {
    if (coordinator.waiting) coordinator.waiting->push_back({&from, message, epoch});
    return;
  }
  if (is_told_) tell("->", fmt::format("{} {}", from.connection(), place), encode(message));
  note(from, message);
  link(from.connection(), place).heard = now_seconds_;
  const auto answers = coordinator.roster->receive(from.connection(), message, now_seconds_);
  notice_new_run();
  if (std::exchange(coordinator.dies_before_answers, false) && !coordinator.roster->is_over()) {
    check_all(place, answers);
    lose_coordinator(place);
  } else {
    deliver(place, answers);
    forget_if_superseded(place);
  }
}

void ModelWorld::deliver(std::size_t place, const std::vector<Outgoing>& messages) {
  check_all(place, messages);
  for (const auto& [connection, message] : messages) {
    auto& way = link(connection, place);
    const auto arrives = arrival_seconds(way, way.newest_down);
    if (!arrives) continue;
    const bool is_repeated = repeats_one_in_ > 0 && chance_.one_in(repeats_one_in_);
    auto* process = by_connection_.at(connection);
    for (int copy = 0; copy < (is_repeated ? 2 : 1); ++copy) {
      after(*arrives - now_seconds_, [this, process, place, message = message, epoch = way.epoch] {
        if (link(process->connection(), place).epoch != epoch || !process->is_alive()) return;
        process->receive(place, message);
      });
    }
  }
}

// As Coordinator does.
void ModelWorld::forget_if_superseded(std::size_t place) {
  auto& coordinator = coordinators_[place];
  if (!coordinator.roster->is_superseded()) return;
  if (!has_stand_bys()) throw Violation("the newest coordinator serves the run");
  const RosterState state{.term = coordinator.run.term_after(coordinator.roster->term()),
                          .run = {}};
  tell("--", "coordinator", fmt::format("{} stands by in term {}", place, state.term));
  coordinator.last_change = now_seconds_;
  coordinator.roster = std::make_unique<Roster>(coordinator.run, deadlines_, state, now_seconds_);
}

void ModelWorld::tick() {
  for (std::size_t place = 0; place < coordinators_.size(); ++place) {
    auto& coordinator = coordinators_[place];
    if (coordinator.is_down || coordinator.stands_still) continue;
    deliver(place, coordinator.roster->tick(now_seconds_));
    is_abandoned_ |= coordinator.roster->is_abandoned();
    notice_new_run();
  }
  after(kTickSeconds, [this] { tick(); });
}

// A coordinator that no member of the old run can find begins another with new processes.
void ModelWorld::notice_new_run() {
  const bool has_member = std::ranges::any_of(
      processes_, [](const auto& process) { return process->is_alive() && process->takes_part(); });
  if (has_stand_bys()) {
    // The first begins a run, and may have died for good.
    const bool may_begin_anew = serving_term_ > 0 || coordinators_.front().is_down;
    is_abandoned_ |= may_begin_anew && !has_member && now_seconds_ > fault_end_seconds_;
    return;
  }
  if (!is_blank_) return;
  const auto& roster = *coordinators_.front().roster;
  is_abandoned_ |=
      !has_member || (roster.has_begun() && roster.state().run->progress.generation == 1);
}

}  // namespace farstep::wan
