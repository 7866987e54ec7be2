// One command a site brings its config and its own key to the same place there, with their modes.
#include "trainer/init/next_steps.h"

#include <fmt/ranges.h>

#include <vector>

namespace farstep {

namespace {

namespace fs = std::filesystem;

// What a shell takes as one word.
std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Whether a path leads to the same place of the user's folder at every machine.
bool is_below(const fs::path& path) {
  const auto normal = path.lexically_normal();
  return normal.is_relative() && *normal.begin() != "..";
}

// What a site's files are, from where, and what is brought with them.
struct Cargo {
  bool has_data = false;
  std::string words = "";  // for tar, quoted
};

Cargo cargo_of(const InitPlan& plan, const PlannedSite& site, const fs::path& folder,
               const Here& here) {
  Cargo cargo{.has_data = here.has_data && is_below(folder) && is_below(plan.data) &&
                          (plan.model_from.empty() || is_below(plan.model_from))};
  const auto add = [&](const fs::path& path) {
    cargo.words += (cargo.words.empty() ? "" : " ") + quoted(path.string());
  };
  const auto base = is_below(folder) ? folder : fs::path();
  add(base / "run.json");
  add(base / (site.name + ".json"));
  if (plan.has_keys) add(base / "keys" / "sites" / site.name);
  if (cargo.has_data) {
    add(plan.data);
    if (!plan.model_from.empty()) add(plan.model_from);
  }
  return cargo;
}

// A site with an address takes what this machine sends; one behind NAT has to fetch it.
std::string copy_command(const InitPlan& plan, const PlannedSite& site, const fs::path& folder,
                         const Here& here) {
  const auto words = cargo_of(plan, site, folder, here).words;
  const auto there = quoted(folder.string());
  const bool below = is_below(folder);
  const auto unpack = below ? std::string("tar -xf -")
                            : fmt::format("mkdir -p {} && tar -C {} -xf -", there, there);
  if (!site.address.empty()) {
    return fmt::format("tar {}-cf - {} | ssh USER@{} {}", below ? "" : fmt::format("-C {} ", there),
                       words, site.address, quoted(unpack));
  }
  const auto from = below ? quoted(here.folder.string()) : there;
  return fmt::format("at {}: ssh USER@{} {} | {}", site.name, site_of(plan, plan.host).address,
                     quoted(fmt::format("tar -C {} -cf - {}", from, words)),
                     below ? unpack : fmt::format("({})", unpack));
}

// What min_sites means for this run.
std::string loss_text(const InitPlan& plan) {
  const auto num_sites = plan.sites.size();
  if (num_sites < 2) return "";
  if (num_sites == 2) {
    return fmt::format(
        "\nIf one site is lost, the run goes on at the other: run.json has min_sites 1. Only {}, "
        "which has the coordinator, goes on alone while the line between them is cut. With "
        "min_sites 2 both wait.\n",
        plan.host);
  }
  return fmt::format(
      "\nIf sites are lost, the run goes on while {0} of the {1} are there: run.json has min_sites "
      "{0}. That is more than half, so sites that are cut off from most others wait for them.\n",
      least_sites_of(num_sites), num_sites);
}

}  // namespace

std::string next_steps(const InitPlan& plan, const fs::path& folder, const Here& here) {
  std::vector<std::string> brought{"its files"};
  const bool with_data = cargo_of(plan, plan.sites.front(), folder, here).has_data;
  if (with_data) brought.emplace_back("the data");
  if (with_data && !plan.model_from.empty()) brought.emplace_back("the model");
  if (plan.has_keys) brought.emplace_back("its own keys, and nothing else of keys/");
  auto text = fmt::format("Next, here: bring each site {}:\n", fmt::join(brought, " and "));
  bool any_fetches = false;
  for (const auto& site : plan.sites) {
    text += fmt::format("  {}\n", copy_command(plan, site, folder, here));
    any_fetches = any_fetches || site.address.empty();
  }
  text += "A site on this machine needs none of that.";
  if (any_fetches) {
    text += fmt::format(" The command of a site without address fetches from {}, if this is it.",
                        plan.host);
  }
  text += "\n";
  if (!with_data) {
    text += fmt::format("Bring the data to every site too, as {}", quoted(plan.data));
    if (!plan.model_from.empty()) {
      text += fmt::format(", and the model, as {}", quoted(plan.model_from));
    }
    text += ".\n";
  }
  text += "\n";
  const auto rows = [&](const std::string& title, const std::string& before,
                        const std::string& after) {
    text += title;
    for (const auto& site : plan.sites) {
      text += fmt::format("  {}: farstep {}{}{}\n", site.name, before,
                          quoted((folder / (site.name + ".json")).string()), after);
    }
  };
  rows("Then test every site and the ways between them, at all sites at the same time:\n",
       "doctor ", " --peers");
  rows("Then train, at all sites; the same command goes on after a stop:\n", "train ",
       " --resume=auto");
  text += loss_text(plan);
  if (plan.has_keys) {
    text += fmt::format(
        "\nKeep {} where it is, or move it to a safe place: whoever has it can make a key of any "
        "site. It is not needed for training.\n",
        (folder / "keys" / "authority.key").string());
  }
  return text;
}

}  // namespace farstep
