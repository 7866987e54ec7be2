// Lost, dropped and cut packets stand apart: the first are the line's, the second the sender's
// pace, the third the experiment's.
#include "wan/lab/lab_counters.h"

#include <fmt/format.h>

namespace farstep::wan {

namespace {

std::string row(const std::string& name, const PacketCounters& link) {
  return fmt::format("{:<14} {:>12.3f} {:>10} {:>10} {:>10} {:>10}\n", name,
                     1e-6 * static_cast<double>(link.passed.bytes), link.passed.packets,
                     link.lost.packets, link.queue_full.packets, link.cut.packets);
}

}  // namespace

std::string counters_table(const LabCounters& counters) {
  auto text = fmt::format("{:<14} {:>12} {:>10} {:>10} {:>10} {:>10}\n", "link", "passed MB",
                          "packets", "lost", "queue full", "cut");
  for (const auto& site : counters.sites) {
    text += row(fmt::format("site {} up", site.site), site.up);
    text += row(fmt::format("site {} down", site.site), site.down);
  }
  for (const auto& site : counters.sites) {
    // Usually none: such a packet is a fault of what runs in the site.
    if (site.malformed.packets + site.no_such_site.packets == 0) continue;
    text += fmt::format("site {} sent {} packets that are not IPv4, and {} to no site\n", site.site,
                        site.malformed.packets, site.no_such_site.packets);
  }
  return text;
}

}  // namespace farstep::wan
