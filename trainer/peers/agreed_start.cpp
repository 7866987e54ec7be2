// Fresh weights are drawn at each site, and loaded ones come from each site's own disk. Comparing
// hashes before the first step costs nothing; finding out at the first vote would cost a round.
#include "trainer/peers/agreed_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

RateState read_rate(const std::string& text, const std::string& site) {
  try {
    auto rate = read_untrusted<RateState>(text, "the learning rate's schedule",
                                          {.depth = 4, .members = 16, .values = 64});
    require_whole(rate.cycle);
    return rate;
  } catch (const DataError& error) {
    throw PeerError(
        site, fmt::format("what {} tells of its learning rate cannot be: {}", site, error.what()));
  }
}

}  // namespace

void require_same_round(std::optional<int64_t> own, const View& view, wan::Store& store) {
  const auto texts = wan::share(store, fmt::format("{}/from_round", view.generation),
                                own ? std::to_string(*own) : "none", static_cast<int>(view.self),
                                static_cast<int>(view.size()));
  const auto other =
      std::ranges::find_if(texts, [&](const auto& text) { return text != texts[view.self]; });
  if (other == texts.end()) return;
  throw ConfigError(fmt::format(
      "--from-round: this site {}, and {} does not: give all sites the same round, or none of them",
      own ? fmt::format("goes back to round {}", *own) : "resumes from its newest checkpoint",
      view.members[static_cast<std::size_t>(other - texts.begin())]));
}

void require_same_start(const std::string& theta_hash, const std::string& remedy, const View& view,
                        wan::Store& store) {
  const auto key = [&](const std::string& site) {
    return fmt::format("{}/start/{}", view.generation, site);
  };
  store.put(key(view.own_name()), theta_hash);
  std::set<std::string> hashes;
  std::vector<std::string> lines;
  for (const auto& site : view.members) {
    const auto hash = store.get(key(site));
    hashes.insert(hash);
    lines.push_back(fmt::format("{} has {}", site, hash));
  }
  if (hashes.size() == 1) return;
  wait_until_all_know(store, fmt::format("{}/start_known", view.generation),
                      static_cast<int>(view.self), static_cast<int>(view.size()));
  throw DataError(
      fmt::format("the sites start from different weights, by the checksums of "
                  "theta_global: {}; {}",
                  fmt::join(lines, ", "), remedy));
}

RateState agreed_rate(const RateState& own, const View& view, wan::Store& store) {
  const auto texts = wan::share(store, fmt::format("{}/rate", view.generation), to_json(own).dump(),
                                static_cast<int>(view.self), static_cast<int>(view.size()));
  std::vector<RateState> all;
  for (std::size_t place = 0; place < texts.size(); ++place) {
    all.push_back(read_rate(texts[place], view.members[place]));
  }
  // The first of several, so that all members take the same one.
  return *std::ranges::max_element(all, {}, &RateState::position);
}

}  // namespace farstep
