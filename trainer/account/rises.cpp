#include "trainer/account/rises.h"

#include <fmt/format.h>

#include <map>

#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

std::string consequence_of(const RiseEvent& rise) {
  if (rise.stops) return "the run stopped";
  if (!rise.back_to_round) return "a warning";
  return fmt::format("all sites went back to the weights after round {}", *rise.back_to_round);
}

}  // namespace

std::vector<RiseEvent> rises_of(const RunReport& report) {
  std::map<int64_t, RiseEvent> found;
  for (const auto& site : report.sites) {
    for (const auto& rise : site.rises) found.try_emplace(rise.round, rise);
  }
  std::vector<RiseEvent> sorted;
  for (const auto& [round, rise] : found) sorted.push_back(rise);
  return sorted;
}

std::vector<std::string> rise_lines(const RunReport& report) {
  std::vector<std::string> lines;
  for (const auto& rise : rises_of(report)) {
    lines.push_back(
        fmt::format("round {}: the validation loss was {} after round {}, {} after "
                    "round {}; {}",
                    rise.round, loss_text(rise.loss), rise.validated_round,
                    loss_text(rise.best_loss), rise.best_round, consequence_of(rise)));
  }
  return lines;
}

}  // namespace farstep
