// farstep keys: the authority, keys and revocation list of a run.
#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "wan/secure/key_folder.h"

namespace farstep {

namespace {

struct KeysOptions {
  std::string folder = "keys";
  std::string run;
  std::vector<std::string> sites, revoke;
  int64_t days = 365;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("folder", folder, "where the run's authority is, or will be", a_folder());
    visit("run", run, "makes a new authority, of the run with this name");
    visit("sites", sites, "sites that get a key and a certificate");
    visit("revoke", revoke, "sites whose certificates are revoked");
    visit("days", days, "how long the new certificates are valid", in_range(1, 3600));
  }
};

void print_what_to_copy(const std::string& folder, const std::vector<std::string>& sites) {
  fmt::print("Copy to each site its own folder, and nothing else of {}:\n", folder);
  for (const auto& site : sites) {
    const auto place = wan::site_key_folder(folder, site).string();
    fmt::print("  scp -rp {} USER@{}:farstep-keys\n", place, site);
  }
  fmt::print(
      "Keep {}/authority.key here: whoever has it can make a key of any site. It is not needed "
      "for training.\n",
      folder);
}

}  // namespace

int keys_command(const Arguments& arguments) {
  const auto options = parse_command_line<KeysOptions>("keys", arguments);
  if (!options) return 0;
  const auto& [folder, run, sites, revoked, days] = *options;
  if (sites.empty() == revoked.empty()) {
    throw ConfigError("farstep keys: give either --sites or --revoke, with names of sites");
  }
  if (!revoked.empty() && !run.empty()) {
    throw ConfigError("farstep keys: --revoke takes the authority that is there; leave out --run");
  }
  if (!revoked.empty()) {
    wan::revoke_site_keys(folder, revoked);
    fmt::print("Revoked. Copy {}/revoked.crl to every other site, over its revoked.crl.\n", folder);
    return 0;
  }
  // The authority first: without it there is nothing to sign with.
  if (!run.empty()) wan::make_key_folder(folder, run);
  wan::add_site_keys(folder, sites, days);
  print_what_to_copy(folder, sites);
  return 0;
}

}  // namespace farstep
