// The donor copies the state between two rounds and sends the copy from a thread of its own, so
// that it trains on. The newcomer checks theta_global against the hash that all members voted on:
// the donor is trusted for nothing that the others have not confirmed.
#include "trainer/run/site_handover.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/rate/resumed_rate.h"
#include "trainer/round/join_round.h"
#include "wan/sockets/local_address.h"

namespace farstep {

namespace {

// A planner's and a strategy's state take a few kilobytes for each site.
constexpr uint64_t kMostTextBytes = 16 << 20;
// The rest of the uplink stays free for the syncs.
constexpr double kShareOfUplink = 0.5;

// The service of a secure port at which a newcomer waits.
std::string service_of(const std::string& token) {
  return "state/" + token;
}

std::string checksum_of(std::span<const float> values) {
  return checksum_text(checksum(std::as_bytes(values)));
}

void require_hash(std::span<const float> values, const std::string& expected, const char* name) {
  const auto hash = checksum_of(values);
  if (hash == expected) return;
  throw DataError(
      fmt::format("the run's state came with another {}: {} instead of {}", name, hash, expected));
}

}  // namespace

// The state of a run between two rounds, as bytes of its own.
class SiteHandover::Copy {
 public:
  Copy(SharedState shared, std::span<const float> theta, std::span<const float> momentum)
      : theta_(theta.begin(), theta.end()), momentum_(momentum.begin(), momentum.end()) {
    shared.momentum_hash = checksum_of(momentum_);
    text_ = to_json(shared).dump();
    const uint64_t size = text_.size();
    std::memcpy(text_size_.data(), &size, sizeof(size));
  }

  std::size_t num_values() const { return theta_.size() + momentum_.size(); }
  std::array<std::span<const std::byte>, 4> parts() const {
    return {text_size_, std::as_bytes(std::span(text_)), std::as_bytes(std::span(theta_)),
            std::as_bytes(std::span(momentum_))};
  }

 private:
  const std::vector<float> theta_, momentum_;
  std::string text_;
  std::array<std::byte, 8> text_size_;
};

SiteHandover::SiteHandover(SitePeers& peers, const NetworkConfig& network)
    : peers_(peers), network_(network) {}

void SiteHandover::begin(Run& run, int64_t round, std::span<const wan::Newcomer> newcomers) {
  std::vector<wan::Newcomer> unserved;
  std::ranges::copy_if(newcomers, std::back_inserter(unserved),
                       [&](const auto& newcomer) { return !is_sent(newcomer, round); });
  if (unserved.empty()) return;
  const bool is_mid_round = run.site.steps_done() > 0;
  const auto span = run.recorder.span(
      SpanCause::kRecovery, is_mid_round ? run.position.round() : run.position.rounds_done);
  const auto copy = begin_copy(run);
  for (const auto& newcomer : unserved) {
    const auto& request = newcomer.request;
    Transfer transfer{.site = newcomer.site,
                      .offer = {.token = request.token,
                                .round = round,
                                .seconds = expected_seconds(run).value_or(0),
                                .endpoint = own_endpoint()},
                      .way = way_to(newcomer),
                      .limits = limits_of(run),
                      .copy = copy};
    auto& sender = senders_[newcomer.site];
    sender.request = request;
    sender.round = round;
    sender.task.replace([this, transfer = std::move(transfer)](const std::stop_token& stop) {
      send(transfer, stop);
    });
  }
}

void SiteHandover::send(const Transfer& transfer, const std::stop_token& stop) {
  const auto& [site, offer, way, limits, copy] = transfer;
  try {
    const auto state = copy.get();
    if (!peers_.offer_state(offer, stop)) return;
    spdlog::info("the state after round {}, {} values, goes to site {}", offer.round,
                 state->num_values(), site);
    const wan::BulkAddress address{way.address.ip(), way.address.port(), offer.token};
    if (!send_bulk(address, state->parts(), limits, stop)) return;
    spdlog::info("site {} has the run's state", site);
  } catch (const std::exception& error) {
    // The newcomer asks for another donor's.
    spdlog::warn("the run's state did not reach site {}: {}", site, error.what());
  }
}

bool SiteHandover::is_sent(const wan::Newcomer& newcomer, int64_t round) const {
  const auto known = senders_.find(newcomer.site);
  return known != senders_.end() && known->second.request == newcomer.request &&
         known->second.round == round;
}

// The copy's memory is new, and so each page of it costs a fault: too much between two steps.
SiteHandover::CopyUnderWay SiteHandover::begin_copy(Run& run) {
  auto copy = copier_
                  .submit([shared = shared_state(run), theta = run.strategy.theta_global(),
                           momentum = run.strategy.outer_momentum()] {
                    return std::make_shared<const Copy>(shared, theta, momentum);
                  })
                  .share();
  // The end of the task behind it, since that of the copy would keep its memory.
  auto copied = copier_.submit([] {}).share();
  const std::lock_guard lock(mutex_);
  newest_copied_ = std::move(copied);
  return copy;
}

void SiteHandover::wait_for_copies() {
  std::shared_future<void> copied;
  {
    const std::lock_guard lock(mutex_);
    copied = newest_copied_;
  }
  if (copied.valid()) copied.wait();
}

void SiteHandover::finish(const std::stop_token& stop) {
  for (auto& [site, sender] : senders_) sender.task.finish(stop);
}

void SiteHandover::end() {
  senders_.clear();
  wait_for_copies();
}

wan::BulkLimits SiteHandover::limits_of(const Run& run) const {
  wan::BulkLimits limits{.stall_seconds = run.config.deadlines.transfer_stall_seconds};
  if (network_.uplink_bits_per_second) {
    limits.bits_per_second = kShareOfUplink * *network_.uplink_bits_per_second;
  }
  return limits;
}

std::optional<double> SiteHandover::expected_seconds(const Run& run) const {
  const auto& view = run.peers.view();
  auto bits_per_second = limits_of(run).bits_per_second;
  if (!bits_per_second) bits_per_second = run.peers.uplink().bits_per_second;
  // Links that were made anew have measured nothing yet.
  if (!bits_per_second) {
    bits_per_second = run.planner.sites(view)[view.self].seen_links.uplink_bits_per_second;
  }
  if (!bits_per_second) return std::nullopt;
  const auto num_values = static_cast<double>(2 * run.parameters);
  return 8 * sizeof(float) * num_values / *bits_per_second;
}

wan::Way SiteHandover::way_to(const wan::Newcomer& newcomer) const {
  const auto& request = newcomer.request;
  const auto port = static_cast<int>(request.port);
  auto* secure_port = peers_.secure_port();
  if (secure_port == nullptr) return {wan::SocketAddress(request.ip, port), nullptr};
  if (port != 0) {
    secure_port->gateway().know_for_lane(newcomer.site, wan::kStateLane,
                                         wan::SocketAddress(request.ip, port).place());
  }
  return secure_port->gateway().way_to(newcomer.site, wan::kStateLane, service_of(request.token),
                                       "127.0.0.1");
}

std::string SiteHandover::own_endpoint() const {
  const auto* secure_port = peers_.secure_port();
  const bool is_reached = secure_port != nullptr && secure_port->reached_at();
  return is_reached ? secure_port->reached_at()->place().endpoint() : "";
}

void SiteHandover::connect_to(const std::string& donor, const std::string& endpoint) const {
  if (endpoint.empty()) {
    throw PeerError(donor, fmt::format("neither site {} nor this one can be connected to: give "
                                       "one of them a network.address that the other reaches",
                                       donor));
  }
  try {
    const auto [host, port] = wan::parse_endpoint("the donor's address", endpoint);
    // An IP address: no peer decides which names this site looks up.
    peers_.secure_port()->gateway().know_for_lane(donor, wan::kStateLane,
                                                  wan::SocketAddress(host, port).place());
  } catch (const ConfigError& error) {
    throw PeerError(donor, error.what());
  }
}

bool SiteHandover::join(Run& run, const std::function<void()>& record_start,
                        const std::stop_token& stop) {
  for (bool is_recorded = false;;) {
    // Not tried again: nothing but time would change, and a supervisor has more of it.
    std::optional<Door> door(listen(run));
    try {
      const auto state = fetch(run, *door, stop);
      if (!state) return false;
      door.reset();  // its port may be one of those at which the links listen next
      run.checkpoints.leave_after(state->rounds_done);
      if (!std::exchange(is_recorded, true)) record_start();
      if (!run.is_done()) return attend_round(run, *state, stop);
      spdlog::info("the run's rounds are done: this site saves its last state");
      run.checkpoints.begin(run);
      return true;
    } catch (const LeftBehindError&) {
      throw;  // a newer state would meet the same links
    } catch (const PeerError& error) {
      run.peers.throw_if_failed();
      // As with listen(): this site cannot take part for now.
      if (error.site() == run.peers.view().own_name()) throw;
      spdlog::info("{}; this site asks for a newer state", error.what());
    } catch (const DataError& error) {
      spdlog::warn("{}; this site asks for a newer state", error.what());
    }
  }
}

SiteHandover::Door SiteHandover::listen(const Run& run) const {
  auto* secure_port = peers_.secure_port();
  const auto& deadlines = run.config.deadlines;
  const auto ip = secure_port != nullptr
                      ? std::string("127.0.0.1")
                      : wan::resolve_address(network_.address, network_.interface);
  const auto port = secure_port != nullptr ? 0 : static_cast<int>(network_.port);
  Door door{.receiver = {ip, port, deadlines.connect_seconds, deadlines.transfer_stall_seconds},
            .request = {},
            .offer = nullptr};
  const auto& own = door.receiver.address();
  door.request = {.ip = own.ip, .port = own.port, .token = own.token};
  if (secure_port == nullptr) return door;
  door.offer = secure_port->gateway().offer_to_all(service_of(own.token),
                                                   wan::SocketAddress(own.ip, own.port));
  const auto& reached_at = secure_port->reached_at();
  door.request.ip = reached_at ? reached_at->ip() : "";
  door.request.port = reached_at ? reached_at->port() : 0;
  return door;
}

std::optional<SharedState> SiteHandover::fetch(Run& run, Door& door, const std::stop_token& stop) {
  auto& receiver = door.receiver;
  run.peers.set_activity(0, 0, "waiting for the run's state");
  spdlog::info(
      "the run goes on: this site asks for its state, and gets it at once or after a round");
  const auto handover = peers_.fetch(door.request, stop);
  if (!handover) return std::nullopt;
  run.peers.set_activity(handover->round, 0, "receiving the run's state");
  if (door.request.port == 0) connect_to(handover->donor, handover->endpoint);
  uint64_t size = 0;
  if (!receiver.receive(std::as_writable_bytes(std::span(&size, 1)), stop)) return std::nullopt;
  if (size > kMostTextBytes) {
    throw DataError(fmt::format("the run's state begins with a text of {} bytes", size));
  }
  std::string text(size, '\0');
  const auto theta = run.strategy.theta_global();
  const auto momentum = run.strategy.outer_momentum();
  if (!receiver.receive(std::as_writable_bytes(std::span(text)), stop) ||
      !receiver.receive(std::as_writable_bytes(theta), stop) ||
      !receiver.receive(std::as_writable_bytes(momentum), stop)) {
    return std::nullopt;
  }
  receiver.finish();
  auto state = read_shared_state(text);
  require_hash(theta, handover->theta_hash, "theta_global");
  require_hash(momentum, state.momentum_hash, "momentum");
  take_shared_state(run, state);
  spdlog::info("the state after round {} has come from site {}: {}", handover->round,
               handover->donor,
               joined_rate_text(run.config.inner.rate, run.cycle, run.position.rounds_done,
                                run.config.outer.rounds));
  return state;
}

}  // namespace farstep
