// What must hold in every run of the model.
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/wan/roster/model_world.h"

namespace farstep::wan {

namespace {

// Longer than any outage from which a message may still be under way.
constexpr double kCalmSeconds = 8;
// Longer than a claim may come after the silence for which it does.
constexpr double kClaimSeconds = 25;

void require(bool holds, const std::string& rule) {
  if (!holds) throw Violation(rule);
}

}  // namespace

void ModelWorld::note(const ModelSite& from, const SiteMessage& message) {
  if (const auto* arrive = std::get_if<ArriveMessage>(&message)) {
    arrivals_[{arrive->generation, {arrive->round, arrive->fragment}}][from.name()] =
        arrive->theta_hash;
  } else if (const auto* vote = std::get_if<VoteMessage>(&message)) {
    votes_[{vote->generation, {vote->round, vote->fragment}}][from.name()] = vote->theta_hash;
  }
}

// What a coordinator decides counts even if nobody hears of it.
void ModelWorld::check_all(std::size_t place, const std::vector<Outgoing>& messages) {
  check_memory(*coordinators_[place].roster);
  // The handovers that follow from a commit come before it.
  for (const auto& [connection, message] : messages) {
    const auto* committed = std::get_if<CommittedMessage>(&message);
    if (committed == nullptr) continue;
    if (is_stale(place)) {
      note_stale_commit(*committed);
    } else {
      check_commit(*committed);
    }
  }
  for (const auto& [connection, message] : messages) {
    if (is_told_) tell("<-", fmt::format("{} {}", connection, place), encode(message));
    check(place, connection, message);
  }
}

void ModelWorld::check(std::size_t place, const std::string& connection,
                       const CoordinatorMessage& message) {
  if (const auto* stop = std::get_if<StopMessage>(&message)) {
    throw Violation("theta_global is equal at all sites: " + stop->reason);
  }
  const auto* welcome = std::get_if<Welcome>(&message);
  if (welcome != nullptr && !welcome->is_newcomer && welcome->generation == 1) {
    const bool is_another_run = has_stand_bys() ? serving_term_ != welcome->term : is_blank_;
    is_abandoned_ |= serving_term_ > 0 && is_another_run;
    serving_term_ = welcome->term;
    members_ = welcome->sites;
  }
  const auto* view = std::get_if<ViewMessage>(&message);
  if (std::holds_alternative<ClaimMessage>(message) && has_stand_bys()) check_claim(place);
  if (is_stale(place) || is_abandoned_) return;
  if (view != nullptr) check_view(place, *view);
  if (const auto* go = std::get_if<Go>(&message)) check_go(*go);
  if (const auto* request = std::get_if<DonateMessage>(&message)) {
    asked_states_.emplace(request->newcomer.request.token, request->round);
  }
  if (const auto* handover = std::get_if<HandoverMessage>(&message)) note_handover(*handover);
  if (const auto* error = std::get_if<ErrorMessage>(&message)) {
    require(!by_connection_.at(connection)->is_alive(),
            "no message of a living site is wrong: " + error->message);
  }
  if (std::holds_alternative<PeerLostMessage>(message) &&
      !coordinators_[place].roster->failure().empty()) {
    check_loss_of_run(place);
  }
}

// The first message of a handover; the others repeat it, whatever has happened since.
void ModelWorld::note_handover(const HandoverMessage& handover) {
  const auto commit = commits_.find({handover.round, fragments_ - 1});
  require(commit != commits_.end() && commit->second.hash == handover.theta_hash,
          "a handover is of a committed round");
  const std::pair state{handover.token, handover.round};
  if (!handed_states_.insert(state).second) return;
  const SyncId next{handover.round + 1, 0};
  require(!gos_.contains({generation_, next}) && !commits_.contains(next),
          "a state is handed over before the next sync has begun");
  if (asked_states_.contains(state)) ++num_handovers_in_mid_round_;
}

void ModelWorld::check_view(std::size_t place, const ViewMessage& view) {
  const bool is_taken_over = has_stand_bys() ? view.term > serving_term_ : is_blank_;
  if (has_stand_bys()) serving_term_ = view.term;
  require(view.generation >= generation_, "generations rise");
  if (view.generation == generation_) return;
  if (is_taken_over) {
    check_takeover(view);
    return;
  }
  require(view.generation == generation_ + 1, "generations rise by one");
  if (!view.joined.empty()) {
    for (const auto& [meeting, go] : gos_) {
      require(meeting.first != generation_ || commits_.contains(meeting.second),
              "a newcomer ends no exchange");
    }
    ++num_newcomers_taken_;
  }
  check_cuts(place, view);
  generation_ = view.generation;
  members_ = view.sites;
}

// Members that one cut takes stay, or leave in one generation. Their last messages come within a
// heartbeat and the longest delay, unless messages are lost besides, or wait for the coordinator. A
// process whose connections break is lost sooner.
void ModelWorld::check_cuts(std::size_t place, const ViewMessage& view) {
  if (loses_one_in_ > 0 || coordinators_[place].stands_still) return;
  for (const auto& cut : cuts_) {
    const bool is_calm = coordinators_[place].last_change < cut.begin_seconds - kCalmSeconds;
    if (!is_calm || now_seconds_ >= cut.end_seconds) continue;
    int64_t num_lost = 0, num_kept = 0;
    bool has_lost_other = false;  // for which the roster has waited before
    for (const auto& site : members_) {
      const auto& process = *newest_process_.at(site);
      const bool is_cut_off = process.is_alive() && process.knows_run() &&
                              cut.connections.contains(process.connection());
      const double silence_seconds = now_seconds_ - link(process.connection(), place).heard;
      if (std::ranges::count(view.sites, site) > 0) {
        num_kept += is_cut_off ? 1 : 0;
      } else if (is_cut_off && silence_seconds > deadlines_.lost_after_seconds) {
        ++num_lost;
      } else {
        has_lost_other = true;
      }
    }
    require(num_lost == 0 || num_kept == 0 || has_lost_other,
            "members that one cut takes are lost together");
    num_losses_together_ += num_lost > 1 ? 1 : 0;
  }
}

// A coordinator that enough sites reach, members among them, keeps the run: of its members, the one
// that asks may be the only one that knows an old state. A process that has just been started may
// have ended a pause for which the others have asked already.
void ModelWorld::check_claim(std::size_t place) const {
  const auto serving = static_cast<std::size_t>(serving_term_ % kMostCoordinators);
  const auto& coordinator = coordinators_[serving];
  const auto& roster = *coordinator.roster;
  const double calm_since = now_seconds_ - kClaimSeconds;
  if (serving == place || coordinator.is_down || coordinator.stands_still ||
      coordinator.last_change > calm_since || !roster.has_begun() || !roster.failure().empty()) {
    return;
  }
  int64_t healthy = 0;
  bool has_member = false;
  for (const auto& [site, process] : newest_process_) {
    const auto link = links_.find({process->connection(), serving});
    const bool is_calm = link != links_.end() && link->second.last_fault < calm_since &&
                         process->age_seconds() > kClaimSeconds;
    if (!process->is_alive() || !is_calm) continue;
    ++healthy;
    has_member |= process->knows_run();
  }
  require(healthy < min_sites_ || !has_member,
          "a coordinator that enough sites reach keeps the run");
}

// Enough members that ask a coordinator, and reach it, go on there.
void ModelWorld::check_stand_bys() const {
  const double calm_since = now_seconds_ - kClaimSeconds;
  for (std::size_t place = 0; has_stand_bys() && place < coordinators_.size(); ++place) {
    const auto& coordinator = coordinators_[place];
    if (coordinator.is_down || coordinator.stands_still || coordinator.last_change > calm_since) {
      continue;
    }
    const auto reaches = [&](const ModelSite& process) {
      return links_.at({process.connection(), place}).last_fault < calm_since;
    };
    const auto asks = [&](const auto& entry) {
      const auto& process = *entry.second;
      const bool is_without_run =
          process.silence_seconds() > kClaimSeconds || process.pause_seconds() > kClaimSeconds;
      return process.takes_part() && is_without_run && reaches(process);
    };
    const auto asks_with_state = [&](const auto& entry) {
      return asks(entry) && entry.second->knows_run();
    };
    require(std::ranges::count_if(newest_process_, asks) < min_sites_ ||
                std::ranges::none_of(newest_process_, asks_with_state),
            "members that reach a coordinator go on there");
    const auto knows_nothing = [&](const auto& entry) {
      const auto& process = *entry.second;
      return process.is_alive() && !process.knows_run() && process.age_seconds() > kClaimSeconds &&
             reaches(process);
    };
    require(newest_process_.size() < names_.size() ||
                !std::ranges::all_of(newest_process_, knows_nothing),
            "if nobody knows the run, all join anew");
  }
}

// What only the former coordinator knew, and sites that have gone, has not happened.
void ModelWorld::check_takeover(const ViewMessage& view) {
  const SyncId newest{view.committed_round, view.committed_fragment};
  for (const auto& site : view.sites) {
    const auto process = newest_process_.find(site);
    if (process == newest_process_.end() || !process->second->is_alive()) continue;
    const auto applied = newest_applied_.find(process->second->connection());
    require(applied == newest_applied_.end() || applied->second <= newest,
            "a new coordinator knows what its members have applied");
  }
  const auto undone = commits_.upper_bound(newest);
  for (auto commit = undone; commit != commits_.end(); ++commit) {
    stale_commits_.insert({commit->first, commit->second.hash});
  }
  commits_.erase(undone, commits_.end());
  is_blank_ = false;
  if (has_stand_bys()) {
    ++num_takeovers_;
    coordinators_[static_cast<std::size_t>(view.term % kMostCoordinators)].last_change =
        now_seconds_;
  }
  generation_ = view.generation;
  members_ = view.sites;
}

// Its members had voted before they followed another coordinator. Those that had not are left
// behind.
void ModelWorld::note_stale_commit(const CommittedMessage& message) {
  const SyncId sync{message.round, message.fragment};
  const auto& votes = votes_[{message.generation, sync}];
  require(!votes.empty(), "a sync is committed when all members have voted");
  stale_commits_.insert({sync, votes.begin()->second});
}

void ModelWorld::check_go(const Go& go) {
  const SyncId sync{go.round, go.fragment};
  const auto [known, is_new] = gos_.try_emplace({go.generation, sync}, go);
  require(known->second.sites == go.sites && known->second.newcomers == go.newcomers,
          "all members hear of one exchange");
  if (!is_new) return;
  require(!commits_.contains(sync), "a committed sync does not begin again");
  require(go.generation == generation_ && go.sites == members_,
          "a sync begins among the members of the newest generation");
  for (const auto& newcomer : go.newcomers) {
    const auto donor = std::ranges::find(go.sites, newcomer.donor) - go.sites.begin();
    require(go.contributions.at(static_cast<std::size_t>(donor)).work.steps > 0,
            "a site that only attends the round is no donor");
  }
  const auto& arrivals = arrivals_[{go.generation, sync}];
  for (const auto& site : go.sites) {
    require(arrivals.contains(site), "a sync begins when all members have arrived");
    require(arrivals.at(site) == arrivals.begin()->second, "members begin with one theta_global");
  }
  require(commits_.empty() || arrivals.begin()->second == commits_.rbegin()->second.hash,
          "a sync begins with the theta_global of the one before");
}

void ModelWorld::check_commit(const CommittedMessage& message) {
  const SyncId sync{message.round, message.fragment};
  if (commits_.contains(sync)) return;
  const auto go = gos_.find({message.generation, sync});
  require(go != gos_.end() && message.generation == generation_,
          "a sync of the newest generation is committed");
  const auto& votes = votes_[{message.generation, sync}];
  for (const auto& site : go->second.sites) {
    require(votes.contains(site), "a sync is committed when all members have voted");
    require(votes.at(site) == votes.begin()->second, "members vote for one theta_global");
  }
  if (!commits_.empty()) {
    const auto& last = commits_.rbegin()->first;
    const bool was_end = last.fragment + 1 == fragments_;
    require(sync == (was_end ? SyncId{last.round + 1, 0} : SyncId{last.round, last.fragment + 1}),
            "syncs are committed in order");
  }
  commits_.emplace(sync, Commit{message.generation, votes.begin()->second});
  was_completed_ |= sync == SyncId{rounds_, fragments_ - 1};
}

// Sites that nothing disturbs are enough to go on.
void ModelWorld::check_loss_of_run(std::size_t place) const {
  int64_t healthy = 0;
  for (const auto& member : members_) {
    const auto process = newest_process_.find(member);
    if (process == newest_process_.end() || !process->second->can_go_on()) continue;
    const auto& link = links_.at({process->second->connection(), place});
    if (known_terms_.at(member) > coordinators_[place].roster->term()) continue;
    healthy += link.last_fault < now_seconds_ - kCalmSeconds ? 1 : 0;
  }
  require(healthy < min_sites_, "a run with enough sites goes on");
  check_stand_bys();
}

// A site puts one address in a generation. Before the first commit, each generation has lost a
// site. Later, the newest one's are kept, what came late of the one before, and a get of each site.
void ModelWorld::check_memory(const Roster& roster) const {
  const auto sites = names_.size();
  require(roster.num_kept() <= sites * sites + 3 * sites, "the roster's memory is bounded");
}

void ModelWorld::check_member(const ModelSite& site, const Go& go) const {
  require(std::ranges::count(go.sites, site.name()) == 1, "a site begins no sync of others");
}

void ModelWorld::check_handover(const HandoverMessage& handover, const ModelState& state) const {
  require(handover.round == state.rounds_done && handover.theta_hash == std::to_string(state.theta),
          "a newcomer gets the state that the members voted for");
}

void ModelWorld::applied(const ModelSite& site, const SyncId& sync, uint64_t theta) {
  // Such a site comes back as a newcomer.
  if (stale_commits_.contains({sync, std::to_string(theta)}) &&
      (!commits_.contains(sync) || commits_.at(sync).hash != std::to_string(theta))) {
    return;
  }
  const auto commit = commits_.find(sync);
  require(commit != commits_.end(), "only what is committed is applied");
  require(commit->second.hash == std::to_string(theta), "a sync is applied with one hash");
  const auto [newest, is_first] = newest_applied_.try_emplace(site.connection(), sync);
  if (is_first) return;
  // The first after the one before. A newcomer that was late skips rounds, and begins one.
  require(newest->second < sync && (commit == commits_.begin() || sync.fragment == 0 ||
                                    std::prev(commit)->first == newest->second),
          "no sync is applied twice or out of order");
  newest->second = sync;
}

void ModelWorld::check_end() const {
  if (is_abandoned_) return;
  const bool is_undisturbed = num_faults_ == 0 && loses_one_in_ == 0 && !restarts_done_sites_;
  if (has_stand_bys()) {
    require(!is_undisturbed || was_completed(), "a run without faults is completed");
    return;
  }
  const auto& failure = coordinators_.front().roster->failure();
  for (const auto& process : processes_) {
    require(!process->has_done_all() || was_completed(), "who has done all has done the last sync");
  }
  if (is_undisturbed) {
    require(failure.empty() && was_completed(), "a run without faults is completed: " + failure);
  }
  require(!failure.empty() || was_completed(), "a run that does not fail is completed");
}

}  // namespace farstep::wan
