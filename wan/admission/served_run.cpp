#include "wan/admission/served_run.h"

#include <algorithm>

namespace farstep::wan {

int64_t ServedRun::term_after(int64_t term) const {
  if (!place) return term + 1;
  const int64_t above = (*place - term - 1) % kMostCoordinators;
  return term + 1 + (above + kMostCoordinators) % kMostCoordinators;
}

bool ServedRun::names(const std::string& site) const {
  return std::ranges::find(sites, site) != sites.end();
}

bool is_site_name(std::string_view name) {
  constexpr std::size_t kMostCharacters = 100;
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.size() <= kMostCharacters &&
         name.find_first_not_of(kCharacters) == std::string_view::npos;
}

}  // namespace farstep::wan
