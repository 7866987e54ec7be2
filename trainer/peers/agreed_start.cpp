// Fresh weights are drawn at each site, and loaded ones come from each site's own disk. Comparing
// hashes before the first step costs nothing; finding out at the first vote would cost a round.
#include "trainer/peers/agreed_start.h"

#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

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

}  // namespace farstep
