// One command a site brings its config and its own key to the same place there, with their modes.
#include "trainer/init/next_steps.h"

#include <fmt/format.h>

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

std::string copy_command(const InitPlan& plan, const PlannedSite& site, const fs::path& folder) {
  const auto there = quoted(folder.string());
  const auto own_keys = plan.has_keys ? fmt::format(" keys/sites/{}", site.name) : "";
  // Where no address is known the name may be one of the user's ssh config.
  const auto& machine = site.address.empty() ? site.name : site.address;
  return fmt::format("tar -C {} -cf - run.json {}.json{} | ssh USER@{} {}", there, site.name,
                     own_keys, machine,
                     quoted(fmt::format("mkdir -p {} && tar -C {} -xf -", there, there)));
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

std::string next_steps(const InitPlan& plan, const fs::path& folder) {
  std::string text = "Next, here: bring each site its files";
  text += plan.has_keys ? " and its own keys, and nothing else of keys/:\n" : ":\n";
  for (const auto& site : plan.sites) {
    text += fmt::format("  {}\n", copy_command(plan, site, folder));
  }
  text += "A site on this machine needs none of that.\n";
  text += fmt::format("Bring the data to every site too, as {}", quoted(plan.data));
  if (!plan.model_from.empty()) {
    text += fmt::format(", and the model, as {}", quoted(plan.model_from));
  }
  text += ".\n\n";
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
  rows("Then train, at all sites; the same command goes on after a stop:\n", "train --config ",
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
