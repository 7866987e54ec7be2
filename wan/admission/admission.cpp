// The run starts when all that register agree on everything that would make it go wrong silently:
// the run file, the data, and the checkpoint to go on from.
#include "wan/admission/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "trainer/config/config_file.h"
#include "wan/admission/served_run.h"

namespace farstep::wan {

namespace {

constexpr std::size_t kLongestHash = 16;

bool is_hexadecimal(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
}

// Returns the facts that `others` have too. A site that serves alone has no data, and says nothing
// of it.
Json common_facts(const Json& facts, const Json& others) {
  auto common = Json::object();
  for (const auto& fact : facts.items()) {
    if (others.contains(fact.key())) common[fact.key()] = fact.value();
  }
  return common;
}

// Returns what to do where a fact differs, if the fact does not tell that itself.
std::string_view remedy_of(std::string_view fact) {
  if (fact != "gloo_release") return "";
  return "; build Farstep at both with Gloo of one release, as libgloo-dev of one Debian is";
}

}  // namespace

// A site without a run file takes the coordinator's run, so it cannot differ.
std::optional<std::string> objection_to_run(const RegisterMessage& newcomer, const Json& run) {
  if (!newcomer.run) return std::nullopt;
  const auto difference = first_difference(*newcomer.run, run);
  if (!difference) return std::nullopt;
  return fmt::format("the run of site {} (here) is not the coordinator's (there): {}",
                     newcomer.site, *difference);
}

// The names "here" and "there" tell the reader which site has which value.
std::optional<std::string> objection_to_facts(const RegisterMessage& newcomer,
                                              const RegisterMessage& registered) {
  const auto difference = first_difference(common_facts(newcomer.facts, registered.facts),
                                           common_facts(registered.facts, newcomer.facts));
  if (!difference) return std::nullopt;
  const auto fact = std::string_view(*difference).substr(0, difference->find(':'));
  return fmt::format("site {} (here) does not fit site {} (there): {}{}", newcomer.site,
                     registered.site, *difference, remedy_of(fact));
}

std::optional<std::string> objection_to_states(const RegisterMessage& newcomer) {
  const auto is_count = [](int64_t count) {
    return count >= 0 && static_cast<double>(count) <= kMostCount;
  };
  for (const auto& state : newcomer.states) {
    if (!is_count(state.syncs) || !is_count(state.round.value_or(0))) {
      return fmt::format("site {} offers a checkpoint after {} syncs, which no run can have done",
                         newcomer.site, state.syncs);
    }
    if (state.theta_hash.size() > kLongestHash ||
        !std::ranges::all_of(state.theta_hash, is_hexadecimal)) {
      return fmt::format("site {} offers a checkpoint whose checksum is none", newcomer.site);
    }
    if (!std::ranges::all_of(state.members, is_site_name)) {
      return fmt::format("site {} offers a checkpoint of sites that cannot be", newcomer.site);
    }
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_resume(const RegisterMessage& newcomer,
                                               const RegisterMessage& registered) {
  // A site that may do either follows the others.
  if (newcomer.resume == registered.resume || newcomer.resume == Resume::kAuto ||
      registered.resume == Resume::kAuto) {
    return std::nullopt;
  }
  const bool newcomer_resumes = newcomer.resume == Resume::kAlways;
  return fmt::format("site {} resumes from a checkpoint and site {} does not: all or none must",
                     newcomer_resumes ? newcomer.site : registered.site,
                     newcomer_resumes ? registered.site : newcomer.site);
}

}  // namespace farstep::wan
