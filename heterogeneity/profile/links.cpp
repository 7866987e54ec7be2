// Two sites of a pair take turns as sender and receiver, and pairs follow each other in a fixed
// order. So every figure is of a link that carries nothing else.
#include "heterogeneity/profile/links.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "heterogeneity/profile/medians.h"
#include "trainer/base/error.h"
#include "wan/transport/link_meter.h"

namespace farstep::heterogeneity {

namespace {

constexpr int kPings = 11;  // after one that warms up; odd, so that the median is one of them
constexpr int kSmallBursts = 3;
// A twentieth of a second at 10 Mbit/s: fast on a slow link too. It doubles from there.
constexpr int64_t kFirstBurstBytes = 64 * 1024;
// Of a transfer's rate to that of the one before, half as large. If a transfer takes a fixed time,
// such as TCP's slow start, and its bytes at the line's rate R, a growth g leaves it at (2 - g) R.
// So a tenth is missing at most. A rate that falls by more shows a loss in this transfer, not the
// line's rate.
constexpr double kSettledGrowth = 1.1;
// The rate of a longer line may stand still for seconds where CUBIC's window has a plateau.
constexpr double kLongRttSeconds = 0.02;
// Of the round trip to the least one: then packets wait in a queue.
constexpr double kQueueGrowth = 1.1;
constexpr double kPingSeconds = 5;  // for the pings of one direction on a slow link

// Whether neither of two rates is much above the other.
bool are_alike(double a, double b) {
  return a < kSettledGrowth * b && b < kSettledGrowth * a;
}

// Whether the line shows that it carries no more: packets wait in a queue. A loss does not show it:
// one in slow start leaves CUBIC far below the line's rate. A transport without the kernel's
// figures has one round trip, and can show nothing.
bool is_full(const wan::LinkState& link) {
  return link.least_rtt_seconds < kLongRttSeconds || link.rtt_seconds == link.least_rtt_seconds ||
         link.rtt_seconds > kQueueGrowth * link.least_rtt_seconds;
}

enum Phase : uint32_t { kPing, kPong, kSize, kBurst, kAck, kTurn };

using Word = std::array<std::byte, sizeof(int64_t)>;

// One site's part in the measurement with one peer.
class PairProbe {
 public:
  PairProbe(wan::Transport& transport, int peer, const LinkProbe& probe, const Clock& clock)
      : transport_(transport), peer_(peer), probe_(probe), clock_(clock) {}

  LinkProfile measure() {
    const double rtt_seconds = round_trip_seconds();
    return {.peer = transport_.site(peer_),
            .rtt_seconds = rtt_seconds,
            .bandwidth_bits_per_second = bits_per_second(rtt_seconds)};
  }

  // The peer's part while this site's peer calls measure().
  void answer() {
    answer_pings();
    take_bursts();
  }

 private:
  std::unique_ptr<wan::Transfer> start_send(Phase phase, std::span<const std::byte> bytes) {
    return transport_.send(peer_, {.phase = phase}, bytes);
  }
  std::unique_ptr<wan::Transfer> start_receive(Phase phase, std::span<std::byte> bytes) {
    return transport_.receive(peer_, {.phase = phase}, bytes);
  }

  // Both sides post their receive before the ping is sent, so that it travels at once.
  double round_trip_seconds() {
    std::vector<double> seconds;
    for (int i = 0; i <= kPings; ++i) {
      const Word ping{};
      Word pong;
      const auto answer = start_receive(kPong, pong);
      const double begin = clock_.now_seconds();
      start_send(kPing, ping)->wait();
      answer->wait();
      if (i > 0) seconds.push_back(clock_.now_seconds() - begin);
    }
    return median(std::move(seconds));
  }

  void answer_pings() {
    Word ping;
    const Word pong{};
    auto waiting = start_receive(kPing, ping);
    for (int i = 0; i <= kPings; ++i) {
      waiting->wait();
      if (i < kPings) waiting = start_receive(kPing, ping);
      start_send(kPong, pong)->wait();
    }
  }

  // Doubles the transfer until it is at the line's rate, without knowing either. Over a long line
  // TCP begins slowly, and each transfer is faster than the one before. A rate that stands still
  // proves nothing in a short transfer, which the line's buffers may hold, nor on a long line
  // without a queue. Subtracts the time of a
  // small transfer, which is latency.
  double bits_per_second(double rtt_seconds) {
    const double begin = clock_.now_seconds();
    std::vector<double> small;
    for (int i = 0; i < kSmallBursts; ++i) small.push_back(burst(sizeof(Word)));
    const double fixed_seconds = median(small);
    const double least_seconds =
        std::max(probe_.seconds / 2, wan::LinkMeter::kTrustedRoundTrips * rtt_seconds);
    int64_t bytes = std::min(kFirstBurstBytes, probe_.most_bytes);
    int64_t sent_bytes = 0;
    double rate_before = 0;
    double best_rate = 0;  // of the transfers that last long enough
    while (true) {
      const double seconds = burst(bytes);
      sent_bytes += bytes;
      // At least half of the time counts. Latency that was measured too long would otherwise give
      // any speed.
      const double own_seconds = std::max(seconds - fixed_seconds, seconds / 2);
      const double rate = 8.0 * static_cast<double>(bytes) / own_seconds;
      const bool is_long = own_seconds >= least_seconds;
      if (is_long) best_rate = std::max(best_rate, rate);
      const bool is_at_line = is_full(transport_.link(peer_));
      const bool has_settled = is_long && are_alike(rate, rate_before) && is_at_line;
      const bool may_grow = !is_at_line || rate > kSettledGrowth * rate_before;
      const double most_seconds = may_grow ? probe_.most_growing_seconds() : probe_.most_seconds();
      const double spent_seconds = clock_.now_seconds() - begin;
      if (has_settled || sent_bytes + 2 * bytes > probe_.most_bytes ||
          spent_seconds + 2 * seconds > most_seconds) {
        announce(0);
        // At a limit the best of the long transfers says most: slow start and losses only lower a
        // rate. A short one may be held by the line's buffers, and counts if there is no other.
        return has_settled || best_rate == 0 ? rate : best_rate;
      }
      rate_before = rate;
      bytes *= 2;
    }
  }

  void announce(int64_t bytes) {
    Word size;
    std::memcpy(size.data(), &bytes, sizeof(bytes));
    start_send(kSize, size)->wait();
  }

  // Returns the seconds until this site knows that the peer has received all bytes.
  double burst(int64_t bytes) {
    content_.resize(static_cast<std::size_t>(bytes));
    Word ack;
    const auto answer = start_receive(kAck, ack);
    const double begin = clock_.now_seconds();
    announce(bytes);
    start_send(kBurst, content_)->wait();
    answer->wait();
    return clock_.now_seconds() - begin;
  }

  // A size of 0 ends the bursts. The size is checked, because memory is allocated for it.
  void take_bursts() {
    while (true) {
      Word size;
      start_receive(kSize, size)->wait();
      int64_t bytes = 0;
      std::memcpy(&bytes, size.data(), sizeof(bytes));
      if (bytes == 0) return;
      if (bytes < 0 || bytes > probe_.most_bytes + static_cast<int64_t>(sizeof(Word))) {
        throw PeerError(transport_.site(peer_),
                        fmt::format("{} announces {} bytes, more than the probe of links sends",
                                    transport_.site(peer_), bytes));
      }
      content_.resize(static_cast<std::size_t>(bytes));
      start_receive(kBurst, content_)->wait();
      start_send(kAck, size)->wait();
    }
  }

  wan::Transport& transport_;
  const int peer_;
  const LinkProbe probe_;
  const Clock& clock_;
  std::vector<std::byte> content_;
};

}  // namespace

// Each site measures with all sites after it and then passes the turn to the next one. Pairs that
// measure at the same time would share an uplink and each see a part of it.
std::optional<std::vector<LinkProfile>> measure_links(wan::Transport& transport,
                                                      const LinkProbe& probe, const Clock& clock,
                                                      const std::stop_token& stop) {
  const int rank = transport.rank();
  const wan::Tag turn_tag{.phase = kTurn};
  std::array<std::byte, 1> turn{};
  std::vector<LinkProfile> links;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (stop.stop_requested()) return std::nullopt;
    if (peer == rank) {
      if (rank > 0) transport.receive(rank - 1, turn_tag, turn)->wait();
      continue;
    }
    PairProbe pair(transport, peer, probe, clock);
    // The order is the reverse of the peer's, so one of them answers while the other measures.
    if (peer < rank) pair.answer();
    links.push_back(pair.measure());
    if (peer > rank) pair.answer();
  }
  if (rank + 1 < transport.size()) transport.send(rank + 1, turn_tag, turn)->wait();
  return links;
}

double longest_turn_seconds(int num_sites, const LinkProbe& probe) {
  // Each pair measures in both directions. A burst that begins just within the limit takes as long
  // again.
  const double num_pairs = 0.5 * num_sites * (num_sites - 1);
  return num_pairs * 2 * (kPingSeconds + 2 * probe.most_growing_seconds());
}

}  // namespace farstep::heterogeneity
