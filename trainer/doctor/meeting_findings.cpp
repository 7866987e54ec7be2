#include "trainer/doctor/meeting_findings.h"

#include <algorithm>
#include <sstream>

#include "trainer/doctor/clocks.h"

namespace farstep {

namespace {

constexpr double kMegabit = 1e6;

const heterogeneity::LinkProfile* link_to(const SiteNote& note, const std::string& peer) {
  const auto found = std::ranges::find(note.links, peer, &heterogeneity::LinkProfile::peer);
  return found == note.links.end() ? nullptr : &*found;
}

// The slower direction counts, as a sync waits for both.
std::string sync_text(double bits_per_second, std::size_t sites, int64_t num_parameters) {
  // This site's part of all deltas, and its mean: an Nth of the model twice.
  const double bytes = 2.0 * 4.0 * static_cast<double>(num_parameters) / static_cast<double>(sites);
  return fmt::format("; a sync in fp32 takes about {:.2g} s there", 8 * bytes / bits_per_second);
}

Finding link_finding(const Meeting& meeting, std::size_t peer,
                     std::optional<int64_t> num_parameters) {
  constexpr const char* kSubject = "link";
  const auto& name = meeting.view.members[peer];
  const auto* const there = link_to(meeting.notes[meeting.view.self], name);
  const auto* const back = link_to(meeting.notes[peer], meeting.view.own_name());
  if (there == nullptr || back == nullptr || !there->rtt_seconds ||
      !there->bandwidth_bits_per_second || !back->bandwidth_bits_per_second) {
    return fault(kSubject, ErrorKind::kPeer,
                 fmt::format("{}: one of the two sites has measured nothing: try again", name));
  }
  const double out = *there->bandwidth_bits_per_second, in = *back->bandwidth_bits_per_second;
  auto text =
      fmt::format("{}: connects; round trip {:.2f} ms, {:.1f} Mbit/s to it, {:.1f} Mbit/s from it",
                  name, 1e3 * *there->rtt_seconds, out / kMegabit, in / kMegabit);
  if (num_parameters) {
    text += sync_text(std::min(out, in), meeting.view.size(), *num_parameters);
  }
  return ok(kSubject, text);
}

std::optional<Finding> data_finding(const Meeting& meeting, std::size_t peer) {
  constexpr const char* kSubject = "same data";
  const auto& own = meeting.notes[meeting.view.self].data_digest;
  const auto& other = meeting.notes[peer].data_digest;
  const auto& name = meeting.view.members[peer];
  if (own.empty() || other.empty()) return std::nullopt;
  if (own == other) return ok(kSubject, fmt::format("{} has the same as this site", name));
  return fault(kSubject, ErrorKind::kData,
               fmt::format("the digest is {} here and {} at {}: the data folders differ: copy one "
                           "of them to the other site",
                           own, other, name));
}

}  // namespace

std::vector<Finding> meeting_findings(const Meeting& meeting,
                                      std::optional<int64_t> num_parameters) {
  std::vector<Finding> findings;
  const auto& own = meeting.notes[meeting.view.self];
  for (std::size_t peer = 0; peer < meeting.view.size(); ++peer) {
    if (peer == meeting.view.self) continue;
    findings.push_back(link_finding(meeting, peer, num_parameters));
    findings.push_back(clock_difference_finding(
        meeting.view.members[peer],
        own.clock_offset_seconds - meeting.notes[peer].clock_offset_seconds));
    if (auto data = data_finding(meeting, peer)) findings.push_back(std::move(*data));
  }
  for (const auto& site : meeting.run.sites) {
    if (std::ranges::find(meeting.view.members, site.name) != meeting.view.members.end()) continue;
    findings.push_back(warning(
        "peers", fmt::format("{} did not come, and the run can begin without it: start `farstep "
                             "doctor --peers` there at the same time to test the way to it",
                             site.name)));
  }
  return findings;
}

std::vector<Finding> failed_meeting_findings(const Error& error) {
  std::vector<Finding> findings;
  std::istringstream lines(error.what());
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) findings.push_back(fault("peers", error.kind(), line));
  }
  return findings;
}

}  // namespace farstep
