#include "trainer/account/outliers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace farstep {

namespace {

constexpr std::size_t kMostLines = 20;

}  // namespace

std::vector<OutlierEvent> outliers_of(const RunReport& report) {
  std::map<std::tuple<int64_t, int64_t, std::string>, OutlierEvent> found;
  for (const auto& site : report.sites) {
    for (const auto& outlier : site.outliers) {
      found.try_emplace({outlier.round, outlier.fragment, outlier.delta_of}, outlier);
    }
  }
  std::vector<OutlierEvent> sorted;
  for (const auto& [place, outlier] : found) sorted.push_back(outlier);
  return sorted;
}

std::vector<std::string> outlier_lines(const RunReport& report) {
  const auto outliers = outliers_of(report);
  const std::size_t first = outliers.size() - std::min(outliers.size(), kMostLines);
  std::vector<std::string> lines;
  if (first > 0) lines.push_back(fmt::format("the first {} are not shown", first));
  for (std::size_t i = first; i < outliers.size(); ++i) {
    const auto& outlier = outliers[i];
    lines.push_back(fmt::format("round {}: the delta of {} {}; it {}", outlier.round,
                                outlier.delta_of, outlier.reason,
                                outlier.is_left_out ? "was left out" : "counts"));
  }
  return lines;
}

}  // namespace farstep
