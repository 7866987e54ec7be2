#include "tests/wan/roster/model_world.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

namespace farstep::wan {

namespace {

// Restarts, joins and rounds of all sites, with every wait at its longest; and of each sync, as
// some runs have many.
constexpr double kMostSecondsAfterFaults = 250, kMostSecondsOfSync = 2;

}  // namespace

uint64_t Chance::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

double Chance::between(double low, double high) {
  return low + (high - low) * static_cast<double>(next() >> 11) / 9007199254740992.0;
}

uint64_t mix(uint64_t a, uint64_t b) {
  return Chance(a * 31 + b).next();
}

ModelWorld::ModelWorld(uint64_t seed, bool is_told) : is_told_(is_told), chance_(mix(seed, 1)) {
  deadlines_.lost_after_seconds = 3;
  deadlines_.leave_seconds = 3;
  deadlines_.coordinator_lost_after_seconds = 30;
  deadlines_.pause_seconds = chance_.one_in(3) ? 0 : chance_.one_in(2) ? 6 : 60;
  const int64_t num_sites = 2 + chance_.below(3);
  for (int64_t i = 0; i < num_sites; ++i) names_.push_back(std::string(1, "abcd"[i]));
  rounds_ = 2 + chance_.below(6);
  fragments_ = 1 + chance_.below(2);
  min_sites_ = chance_.one_in(16) ? num_sites : chance_.one_in(4) ? 2 : 1;
  longest_round_seconds_ = chance_.one_in(3) ? 0.2 : 3;
  longest_delay_seconds_ = chance_.one_in(3) ? 0.8 : 0.05;
  if (chance_.one_in(2)) loses_one_in_ = 5 + chance_.below(40);
  if (chance_.one_in(2)) repeats_one_in_ = 2 + chance_.below(10);
  restarts_done_sites_ = chance_.one_in(4);
  num_faults_ = chance_.below(8);
  fault_end_seconds_ = chance_.between(3, 20);
  if (chance_.one_in(50)) {  // with many generations
    rounds_ = 40;
    longest_round_seconds_ = 0.5;
    num_faults_ = 30;
    fault_end_seconds_ = 150;
    loses_one_in_ = 0;
  }
  const bool has_several = chance_.below(5) < 2;
  if (has_several) min_sites_ = chance_.one_in(4) ? num_sites : num_sites / 2 + 1;
  const bool is_open = !has_several && chance_.one_in(3);
  const auto num_named = is_open ? chance_.below(num_sites) : num_sites;
  if (is_open && num_named == 0) min_sites_ = 1 + chance_.below(num_sites);
  const std::size_t num_coordinators = has_several ? 2 + chance_.below(2) : 1;
  for (std::size_t place = 0; place < num_coordinators; ++place) {
    auto& coordinator = coordinators_.emplace_back();
    coordinator.run = {.config = Json{{"name", "model"}},
                       .sites = {names_.begin(), names_.begin() + num_named},
                       .fragments = fragments_,
                       .min_sites = min_sites_,
                       .max_sites = num_sites};
    if (has_several) coordinator.run.place = place;
    coordinator.roster = std::make_unique<Roster>(coordinator.run, deadlines_);
  }
  members_ = names_;
  for (const auto& name : names_) {
    after(chance_.between(0, 1), [this, name] { start_process(name); });
  }
  for (int64_t i = 0; i < num_faults_; ++i) {
    after(chance_.between(0, fault_end_seconds_), [this] { draw_fault(); });
  }
  after(kTickSeconds, [this] { tick(); });
}

void ModelWorld::play() {
  const auto num_syncs = static_cast<double>(rounds_ * fragments_);
  const double most_seconds =
      fault_end_seconds_ + kMostSecondsAfterFaults + kMostSecondsOfSync * num_syncs;
  while (!is_over()) {
    if (now_seconds_ > most_seconds) {
      std::vector<std::string> states;
      for (const auto& process : processes_) {
        if (process->is_alive()) states.push_back(process->text());
      }
      throw Violation(fmt::format("the run does not end: {}", fmt::join(states, "; ")));
    }
    const auto event = events_.top();
    events_.pop();
    now_seconds_ = event.seconds;
    ++num_steps_;
    event.action();
  }
  check_end();
}

bool ModelWorld::is_run_over() const {
  if (has_stand_bys() && was_completed_) return true;
  for (std::size_t place = 0; place < coordinators_.size(); ++place) {
    const auto& roster = *coordinators_[place].roster;
    const bool has_run = !has_stand_bys() || (roster.has_begun() && !is_stale(place));
    if (has_run && (roster.is_over() || !roster.failure().empty())) return true;
  }
  return false;
}

bool ModelWorld::is_over() const {
  if (is_abandoned_) return true;
  return num_restarts_due_ == 0 && newest_process_.size() == names_.size() &&
         std::ranges::none_of(processes_, [](const auto& process) { return process->is_alive(); });
}

bool ModelWorld::was_completed() const {
  return was_completed_;
}

void ModelWorld::after(double seconds, std::function<void()> action) {
  events_.push({now_seconds_ + seconds, std::ssize(events_) + num_steps_, std::move(action)});
}

// ---- processes ----

void ModelWorld::start_process(const std::string& site) {
  const auto connection = fmt::format("{}{}", site, processes_.size());
  const double uplink = chance_.one_in(2) ? 0 : chance_.between(1e6, 9e6);
  // It sends from its constructor on.
  processes_.push_back(std::make_unique<ModelSite>(*this, site, connection, uplink));
  auto* process = processes_.back().get();
  newest_process_[site] = process;
  by_connection_[connection] = process;
  struct Beat {
    ModelWorld* world;
    ModelSite* process;
    void operator()() const {
      if (!process->is_alive()) return;
      process->beat();
      world->after(world->deadlines().heartbeat_seconds, *this);
    }
  };
  after(deadlines_.heartbeat_seconds, Beat{this, process});
}

ModelSite* ModelWorld::process_of(const std::string& site) {
  const auto process = newest_process_.find(site);
  return process == newest_process_.end() || !process->second->is_alive() ? nullptr
                                                                          : process->second;
}

// Its connections break, unless its bytes have been sent.
void ModelWorld::gone(ModelSite& site, bool died) {
  tell("--", site.connection(), died ? "dies" : "ends");
  for (auto& [meeting, exchange] : exchanges_) {
    if (commits_.contains(meeting.second) || meeting.first != generation_) continue;
    leave_exchange(site.name(), meeting.first, meeting.second);
  }
  if (is_run_over() || (site.has_done_all() && !restarts_done_sites_)) return;
  ++num_restarts_due_;
  after(chance_.between(0.3, 6), [this, name = site.name()] {
    --num_restarts_due_;
    start_process(name);
  });
}

// ---- faults ----

void ModelWorld::draw_fault() {
  const auto& name = names_[static_cast<std::size_t>(chance_.below(std::ssize(names_)))];
  auto* process = process_of(name);
  if (process == nullptr) return;
  switch (chance_.below(has_stand_bys() ? 10 : 8)) {
    case 0:
    case 1:
      for (std::size_t place = 0; place < coordinators_.size(); ++place) {
        link(process->connection(), place).last_fault = now_seconds_;
      }
      process->crash();
      break;
    case 2:
      harm_links(*process, false);
      break;
    case 3:
      harm_links(*process, true);
      break;
    case 4:
      process->leave(Outcome::kInterrupted);
      break;
    case 5:
      fail_link_of_exchange();
      break;
    case 6:
      cut_off_together();
      break;
    default:
      harm_coordinator();
  }
}

// Its own line, or the way to one coordinator.
void ModelWorld::harm_links(ModelSite& process, bool cuts) {
  const bool keeps_messages = chance_.one_in(2);
  const auto only = static_cast<std::size_t>(chance_.below(2 * std::ssize(coordinators_)));
  double most_seconds = has_stand_bys() ? 25 : 6;
  // Longer than a pause, if it is the way to one of several coordinators.
  if (has_stand_bys() && only < coordinators_.size() && chance_.one_in(3)) most_seconds = 150;
  const double end_seconds = now_seconds_ + chance_.between(0.5, most_seconds);
  tell("--", process.connection(),
       cuts ? fmt::format("is cut off until {:.2f}", end_seconds) : "its connections break");
  for (std::size_t place = 0; place < coordinators_.size(); ++place) {
    if (only < coordinators_.size() && only != place) continue;
    auto& harmed = link(process.connection(), place);
    harmed.last_fault = std::max(harmed.last_fault, cuts ? end_seconds : now_seconds_);
    if (cuts) {
      harmed.cut_until = std::max(harmed.cut_until, end_seconds);
      harmed.keeps_messages = keeps_messages;
      if (!keeps_messages) end_connection(process.connection(), place, end_seconds - now_seconds_);
    } else {
      ++harmed.epoch;
      end_connection(process.connection(), place, 0);
    }
  }
}

// The lines of some sites to all coordinators, as by a failed router.
void ModelWorld::cut_off_together() {
  Cut cut{now_seconds_, now_seconds_ + chance_.between(0.5, 12), {}};
  const bool keeps_messages = chance_.one_in(2);
  for (const auto& name : names_) {
    auto* process = process_of(name);
    if (process == nullptr || chance_.one_in(4)) continue;
    bool was_whole = true;
    for (std::size_t place = 0; place < coordinators_.size(); ++place) {
      auto& harmed = link(process->connection(), place);
      was_whole &= harmed.cut_until < now_seconds_ &&
                   now_seconds_ - harmed.heard < 1.5 * deadlines_.heartbeat_seconds;
      harmed.last_fault = std::max(harmed.last_fault, cut.end_seconds);
      harmed.cut_until = std::max(harmed.cut_until, cut.end_seconds);
      harmed.keeps_messages = keeps_messages;
      const double seconds = harmed.cut_until - now_seconds_;
      if (!keeps_messages) end_connection(process->connection(), place, seconds);
    }
    if (was_whole) cut.connections.insert(process->connection());
  }
  tell("--", fmt::format("{}", fmt::join(cut.connections, " ")),
       fmt::format("are cut off until {:.2f}", cut.end_seconds));
  cuts_.push_back(std::move(cut));
}

// A site may notice it late, as long as no byte comes that says so.
void ModelWorld::end_connection(const std::string& connection, std::size_t place,
                                double after_seconds) {
  const double notice_seconds = chance_.one_in(2) ? 0 : chance_.between(0, 5);
  after(after_seconds + notice_seconds, [this, connection, place] {
    auto* process = by_connection_.at(connection);
    if (process->is_alive()) process->connection_ended(place);
  });
}

// Both of its ends live.
void ModelWorld::fail_link_of_exchange() {
  for (auto& [meeting, exchange] : exchanges_) {
    std::vector<ModelSite*> ends;
    for (const auto& [name, part] : exchange.parts) {
      if (part.site != nullptr && !part.is_gone && !part.has_ended) ends.push_back(part.site);
    }
    if (ends.size() < 2) continue;
    tell("--", "link", fmt::format("between {} and {} breaks", ends[0]->name(), ends[1]->name()));
    ends[0]->exchange_failed(meeting.first, meeting.second, ends[1]->name());
    ends[1]->exchange_failed(meeting.first, meeting.second, ends[0]->name());
    return;
  }
}

// ---- the control plane ----

std::optional<double> ModelWorld::arrival_seconds(Link& link, double& newest) {
  if (loses_one_in_ > 0 && now_seconds_ < fault_end_seconds_ && chance_.one_in(loses_one_in_)) {
    link.last_fault = std::max(link.last_fault, now_seconds_);
    return std::nullopt;
  }
  double leaves = now_seconds_;
  if (now_seconds_ < link.cut_until) {
    if (!link.keeps_messages) return std::nullopt;
    leaves = link.cut_until;
  }
  newest = std::max(newest, leaves + chance_.between(0.001, longest_delay_seconds_));
  return newest;
}

void ModelWorld::tell(const std::string& direction, const std::string& connection,
                      const std::string& text) {
  if (is_told_) fmt::print("{:8.3f} {} {} {}\n", now_seconds_, connection, direction, text);
}

// ---- the data plane ----

void ModelWorld::join_exchange(ModelSite& site, const Go& go, uint64_t theta, uint64_t delta) {
  const Meeting meeting{go.generation, {go.round, go.fragment}};
  auto& exchange = exchanges_[meeting];
  exchange.members = go.sites;
  exchange.theta = theta;
  auto& part = exchange.parts[site.name()];
  part.site = &site;
  part.delta = delta;
  after(chance_.between(0.01, 0.5), [this, meeting, name = site.name()] {
    auto& open = exchanges_[meeting];
    auto& sender = open.parts[name];
    if (sender.is_gone) return;
    sender.has_sent = true;
    look_at(open, meeting);
  });
  look_at(exchange, meeting);
}

void ModelWorld::leave_exchange(const std::string& name, int64_t generation, const SyncId& sync) {
  const Meeting meeting{generation, sync};
  auto& exchange = exchanges_[meeting];
  exchange.parts[name].is_gone = true;
  look_at(exchange, meeting);
}

// Tells who still waits: the mean, if all have sent, or the loss of one that has not.
void ModelWorld::look_at(const ModelExchange& exchange, const Meeting& meeting) {
  uint64_t mean = mix(exchange.theta, static_cast<uint64_t>(meeting.first));
  bool have_all_sent = true;
  std::string lost;
  for (const auto& member : exchange.members) {
    const auto part = exchange.parts.find(member);
    const bool has_sent = part != exchange.parts.end() && part->second.has_sent;
    have_all_sent &= has_sent;
    if (has_sent) mean = mix(mean, part->second.delta);
    if (part != exchange.parts.end() && part->second.is_gone && !has_sent) lost = member;
  }
  if (!have_all_sent && lost.empty()) return;
  for (const auto& [name, part] : exchange.parts) {
    if (part.site == nullptr || part.is_gone) continue;
    after(chance_.between(0.001, 0.3), [this, meeting, mean, lost, name = name] {
      auto& receiver = exchanges_[meeting].parts[name];
      if (std::exchange(receiver.has_ended, true) || receiver.is_gone) return;
      if (lost.empty()) {
        receiver.site->exchange_done(meeting.first, meeting.second, mean);
      } else {
        receiver.site->exchange_failed(meeting.first, meeting.second, lost);
      }
    });
  }
}

void ModelWorld::hand_over(const ModelSite& donor, const Newcomer& newcomer,
                           const ModelState& state) {
  after(chance_.between(0.05, 2), [this, &donor, newcomer, state] {
    auto* process = process_of(newcomer.site);
    if (process != nullptr && donor.is_alive()) process->state_came(newcomer.request.token, state);
  });
}

}  // namespace farstep::wan
