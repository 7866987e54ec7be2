#include "trainer/account/site_figures.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace farstep {

Traffic& Traffic::operator+=(const Traffic& other) {
  wan_bytes_sent += other.wan_bytes_sent;
  wan_bytes_received += other.wan_bytes_received;
  socket_bytes_sent += other.socket_bytes_sent;
  socket_bytes_received += other.socket_bytes_received;
  return *this;
}

void LinkReport::add(const LinkEvent& event) {
  bytes_sent += event.bytes_sent;
  bytes_received += event.bytes_received;
  socket_bytes_sent += event.socket_bytes_sent;
  retransmitted_bytes += event.retransmitted_bytes;
  // The last known figures, not means: they say how fast the line is now.
  bits_per_second = event.bits_per_second;
  rtt_seconds = event.rtt_seconds;
  if (bits_per_second) speeds.push_back(*bits_per_second);
}

double LinkReport::retransmitted_share() const {
  // Emulated links have no sockets, so there the payload counts.
  const auto all = static_cast<double>(std::max(socket_bytes_sent, bytes_sent));
  return all > 0 ? static_cast<double>(retransmitted_bytes) / all : 0;
}

void SiteFigures::count(const Record& record) {
  account_.add(record);
  progress.update(record);
  curve.add(record);
  timeline.add(record);
  std::visit([this](const auto& event) { take(event); }, record.event);
  if (std::holds_alternative<RunEvent>(record.event) ||
      std::holds_alternative<ViewEvent>(record.event) ||
      std::holds_alternative<RoundEvent>(record.event)) {
    milestones.push_back(record);
    milestones.back().time = last_seen();
  }
}

void SiteFigures::take(const RunEvent& event) {
  run = event;
  members_ = event.sites;
  // A site that was resumed has not ended, whatever its earlier process said.
  end.reset();
}

void SiteFigures::take(const StepEvent& event) {
  ++steps;
  tokens += event.tokens;
  if (!first_loss) first_loss = event.loss;
  last_loss = event.loss;
}

void SiteFigures::take(const SyncEvent& event) {
  hidden_wan_seconds += std::max(0.0, event.wan_seconds - event.exposed_wan_seconds);
}

void SiteFigures::take(const RoundEvent& event) {
  rounds_done = std::max(rounds_done, event.round);
  ++rounds_worked;
  merged_tokens += event.tokens;
  traffic += {event.wan_bytes_sent, event.wan_bytes_received, event.socket_bytes_sent,
              event.socket_bytes_received};
  rounds.push_back(event);
}

void SiteFigures::take(const LinkEvent& event) {
  (event.peer ? links[*event.peer] : uplink).add(event);
}

void SiteFigures::take(const ViewEvent& event) {
  members_ = event.members;
  views.push_back(event);
}

// A repeated validation of a round replaces the share, but needs all who were there at either time.
void SiteFigures::take(const EvaluationEvent& event) {
  auto& validation = validations[event.round];
  validation.share = event;
  if (members_.size() > validation.members.size()) validation.members = members_;
}

double SiteFigures::first_seen() const {
  return timeline.processes().empty() ? 0 : timeline.processes().front().start;
}

double SiteFigures::last_seen() const {
  return timeline.processes().empty() ? 0 : timeline.processes().back().end;
}

double SiteFigures::last_start() const {
  return timeline.processes().empty() ? 0 : timeline.processes().back().start;
}

std::string SiteFigures::device_name(std::size_t device) const {
  return device < run.devices.size() ? run.devices[device] : fmt::format("device {}", device);
}

std::string SiteFigures::devices_text() const {
  return run.trains ? fmt::format("{}", fmt::join(run.devices, " + ")) : "server";
}

double SiteFigures::tokens_per_second() const {
  const double seconds = time().total.total_seconds();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double SiteFigures::exposed_wan_share() const {
  const double seconds = time().total.total_seconds();
  return seconds > 0 ? time().total.seconds(SpanCause::kWan) / seconds : 0;
}

}  // namespace farstep
