#include "trainer/doctor/keys.h"

#include <filesystem>

#include "wan/secure/credentials.h"

namespace farstep {

namespace {

constexpr const char* kKeys = "keys";
constexpr const char* kAuthorityKey = "authority.key";  // of the folder of `farstep keys`
// Time to make new keys and to bring them to the sites.
constexpr double kShortDays = 14;

}  // namespace

Finding key_finding(const SiteConfig& site, const std::optional<RunConfig>& run) {
  const auto& folder = site.network.keys;
  if (folder.empty()) {
    return ok(kKeys,
              "none: links are plain TCP, for this machine or a private network; `farstep keys` "
              "makes keys");
  }
  return finding_of(kKeys, [&] {
    const auto credentials = wan::Credentials::from_folder(folder);
    const auto& identity = credentials.identity();
    const double days = credentials.own_days_left();
    const auto text = fmt::format("{}: of site {} of run '{}', valid for {:.0f} days", folder,
                                  identity.site, identity.run, days);
    if (identity.site != site.name) {
      return fault(kKeys, ErrorKind::kConfig,
                   fmt::format("{}: this is site {}: name the folder of its own keys in "
                               "network.keys",
                               text, site.name));
    }
    if (run && identity.run != run->name) {
      return warning(kKeys, fmt::format("{}: the run file is of '{}'. All sites need keys of "
                                        "one authority: are these the run's?",
                                        text, run->name));
    }
    if (std::filesystem::exists(std::filesystem::path(folder) / kAuthorityKey)) {
      return warning(kKeys, fmt::format("{}: {} is here too, which can make a key of any site: "
                                        "keep it where you make keys, and remove it here",
                                        text, kAuthorityKey));
    }
    if (days < kShortDays) {
      return warning(kKeys,
                     text + ": make new ones with `farstep keys`, and copy them to this site");
    }
    return ok(kKeys, text);
  });
}

}  // namespace farstep
