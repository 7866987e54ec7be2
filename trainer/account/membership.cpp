#include "trainer/account/membership.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace farstep {

namespace {

constexpr std::size_t kMostChanges = 50;  // of a report; more are no reading

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The members of each round that one site took part in, by its own records. A view says who is a
// member from a round on, so the map has the changes only.
class SiteMemory {
 public:
  explicit SiteMemory(const SiteReport& site) {
    for (const auto& record : site.milestones) {
      if (const auto* run = std::get_if<RunEvent>(&record.event)) {
        // A resumed process begins with the members of its `run` record; what an earlier one knew
        // of later rounds did not happen.
        members_from_.erase(members_from_.lower_bound(run->start_round + 1), members_from_.end());
        members_from_[run->start_round + 1] = run->sites;
      } else if (const auto* view = std::get_if<ViewEvent>(&record.event)) {
        add(*view);
      } else if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
        rounds_.insert(round->round);
      }
    }
  }

  // The rounds that the site was there to see end.
  const std::set<int64_t>& rounds() const { return rounds_; }
  // Returns the members of such a round; none if the file is damaged.
  Names members(int64_t round) const {
    const auto next = members_from_.upper_bound(round);
    return next == members_from_.begin() ? Names{} : std::prev(next)->second;
  }

 private:
  // Who joins in a round has no work in it.
  void add(const ViewEvent& view) {
    if (view.round != newest_round_) newcomers_.clear();
    newest_round_ = view.round;
    if (view.joined) newcomers_.push_back(*view.joined);
    auto& trained = members_from_[view.round];
    trained = view.members;
    std::erase_if(trained, [this](const auto& name) { return has(newcomers_, name); });
    members_from_[view.round + 1] = view.members;
    rounds_.insert(view.round);
  }

  std::map<int64_t, Names> members_from_;  // by the first round with them
  std::set<int64_t> rounds_;
  int64_t newest_round_ = 0;  // of a view
  Names newcomers_;           // of that round
};

// Rounds come in order, so each one extends the last range or begins a new one.
void append(std::vector<RoundRange>& ranges, int64_t round) {
  if (!ranges.empty() && ranges.back().last + 1 == round) {
    ranges.back().last = round;
  } else {
    ranges.push_back({round, round});
  }
}

int64_t count_rounds(const std::vector<RoundRange>& ranges) {
  return std::accumulate(
      ranges.begin(), ranges.end(), int64_t{0},
      [](int64_t sum, const RoundRange& range) { return sum + range.last - range.first + 1; });
}

// The coordinator of a run that was resumed counts generations anew.
std::vector<ViewEvent> changes_of(const RunReport& report) {
  std::map<std::pair<int64_t, int64_t>, ViewEvent> changes;  // by round and generation
  for (const auto& site : report.sites) {
    for (const auto& view : site.views) {
      // All members record a change; the first record of it is as good as the others.
      changes.try_emplace({view.round, view.generation}, view);
    }
  }
  std::vector<ViewEvent> sorted;
  for (const auto& [place, view] : changes) sorted.push_back(view);
  return sorted;
}

std::string change_text(const ViewEvent& view) {
  const auto names = fmt::format("{}", fmt::join(view.members, ", "));
  if (view.joined) {
    return fmt::format("{} joined, and trained from round {} on; members {}", *view.joined,
                       view.round + 1, names);
  }
  if (!view.lost) {
    return fmt::format("{}; {} began the sync anew", view.reason.value_or("no site was lost"),
                       names);
  }
  return fmt::format("{} was lost ({}); {} went on", *view.lost,
                     view.reason.value_or("no reason is known"), names);
}

}  // namespace

int64_t SitePresence::count() const {
  return count_rounds(rounds);
}

Names names_of_run(const std::vector<SiteReport>& sites) {
  // The longest list comes first: a process that joined later knows only those who were there then.
  Names names;
  Names others;
  for (const auto& site : sites) {
    for (const auto& record : site.milestones) {
      if (const auto* run = std::get_if<RunEvent>(&record.event)) {
        if (run->sites.size() > names.size()) names = run->sites;
      } else if (const auto* view = std::get_if<ViewEvent>(&record.event)) {
        others.insert(others.end(), view->members.begin(), view->members.end());
      }
    }
    others.push_back(site.site);
  }
  for (const auto& name : others) {
    if (!has(names, name)) names.push_back(name);
  }
  return names;
}

Membership membership_of(const RunReport& report) {
  Membership membership;
  membership.changes = changes_of(report);
  if (membership.changes.empty()) return membership;
  std::map<int64_t, Names> members;  // by round
  for (const auto& site : report.sites) {
    const SiteMemory memory(site);
    // Sites agree on the members of a round, so any record of it is as good.
    for (const int64_t round : memory.rounds()) members.try_emplace(round, memory.members(round));
  }
  for (const auto& name : report.site_names) membership.sites.push_back({name, {}});
  for (const auto& [round, names] : members) {
    append(membership.known, round);
    for (auto& site : membership.sites) {
      if (has(names, site.site)) append(site.rounds, round);
    }
  }
  return membership;
}

std::string ranges_text(const std::vector<RoundRange>& rounds) {
  Names texts;
  for (const auto& [first, last] : rounds) {
    texts.push_back(first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::string> presence_lines(const Membership& membership) {
  std::vector<std::string> lines;
  const int64_t known = count_rounds(membership.known);
  for (const auto& site : membership.sites) {
    // Of rounds without any records nobody knows who took part.
    const int64_t missed = known - site.count();
    lines.push_back(fmt::format("{}: {}", site.site, ranges_text(site.rounds)));
    if (missed > 0) lines.back() += fmt::format("; {} missed", missed);
  }
  if (membership.known.size() > 1) {
    lines.push_back(
        fmt::format("the events here are of rounds {} only", ranges_text(membership.known)));
  }
  return lines;
}

std::vector<std::string> change_lines(const Membership& membership) {
  const auto& changes = membership.changes;
  const std::size_t first = changes.size() - std::min(changes.size(), kMostChanges);
  std::vector<std::string> lines;
  if (first > 0) lines.push_back(fmt::format("the first {} are left out", first));
  for (std::size_t i = first; i < changes.size(); ++i) {
    lines.push_back(fmt::format("round {}, generation {}: {}", changes[i].round,
                                changes[i].generation, change_text(changes[i])));
  }
  return lines;
}

Json views_json(const Membership& membership) {
  Json views = Json::array();
  for (auto view : membership.changes) views.push_back(to_json(view));
  return views;
}

Json presence_json(const Membership& membership) {
  Json sites = Json::array();
  for (const auto& site : membership.sites) {
    Json rounds = Json::array();
    for (const auto& [first, last] : site.rounds) rounds.push_back(Json::array({first, last}));
    sites.push_back({{"site", site.site}, {"rounds", std::move(rounds)}});
  }
  return sites;
}

}  // namespace farstep
