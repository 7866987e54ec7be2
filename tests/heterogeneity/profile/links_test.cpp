#include "heterogeneity/profile/links.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/wan/transport/meshes.h"
#include "tests/wan/transport/run_ranks.h"
#include "wan/emulate/shaped_transport.h"

namespace farstep::heterogeneity {

namespace {

using Links = std::optional<std::vector<LinkProfile>>;

std::vector<Links> measure_all(const wan::Transports& transports, const LinkProbe& probe,
                               const std::stop_token& stop = {}) {
  const RealClock clock;
  return wan::run_ranks(static_cast<int>(transports.size()), [&](int rank) {
    return measure_links(*transports[static_cast<std::size_t>(rank)], probe, clock, stop);
  });
}

// How a sender finds the rate of a line: it knows it, or it begins slowly as TCP does, once or
// after each pause; or its slow start was over too early, and it goes on by CUBIC (RFC 9438).
enum class Begin { kAtOnce, kSlowOnce, kSlowAlways, kCubic };

// The end of an emulated line at a site, which sends one message at a time. After `loss_bytes` a
// packet is lost: the message that has it takes four times as long.
class LineEnd : public wan::Transport {
 public:
  LineEnd(std::unique_ptr<wan::Transport> inner, double bits_per_second, double rtt_seconds,
          Begin begin, double loss_bytes, Clock& clock)
      : bits_per_second_(bits_per_second),
        rtt_seconds_(rtt_seconds),
        begin_(begin),
        loss_bytes_(loss_bytes),
        shaped_(std::move(inner), shape(bits_per_second), {}, clock) {}

  wan::ShapedTransport& shaped() { return shaped_; }
  int rank() const override { return shaped_.rank(); }
  int size() const override { return shaped_.size(); }
  const std::string& site(int rank) const override { return shaped_.site(rank); }
  std::unique_ptr<wan::Transfer> send(int peer, const wan::Tag& tag,
                                      std::span<const std::byte> bytes) override {
    const auto size = static_cast<double>(bytes.size());
    shaped_.set_shape(peer, shape(8 * size / sending_seconds(size)));
    return shaped_.send(peer, tag, bytes);
  }
  std::unique_ptr<wan::Transfer> receive(int peer, const wan::Tag& tag,
                                         std::span<std::byte> bytes) override {
    return shaped_.receive(peer, tag, bytes);
  }
  void abort(const std::string& site, const std::string& reason) override {
    shaped_.abort(site, reason);
  }
  wan::LinkState link(int peer) const override { return shaped_.link(peer); }

 private:
  static constexpr double kPacketBytes = 1460;
  static constexpr double kFirstWindowBytes = 10 * kPacketBytes;  // as Linux begins

  wan::LinkShape shape(double bits_per_second) const {
    return {.rate_bits_per_second = bits_per_second, .delay_seconds = rtt_seconds_ / 2};
  }

  // Until the window fills the line, each round trip carries one, and doubles it.
  double sending_seconds(double bytes) {
    if (begin_ == Begin::kSlowAlways) window_bytes_ = kFirstWindowBytes;
    const double full_bytes = begin_ == Begin::kAtOnce ? 0 : bits_per_second_ / 8 * rtt_seconds_;
    const bool has_loss = sent_bytes_ < loss_bytes_ && loss_bytes_ <= sent_bytes_ + bytes;
    sent_bytes_ += bytes;
    double seconds = 0;
    if (begin_ == Begin::kCubic) {
      while (window_bytes_ < full_bytes && window_bytes_ < bytes) {
        bytes -= window_bytes_;
        seconds += rtt_seconds_;
        cubic_seconds_ += rtt_seconds_;
        // Sections 4.2 and 4.3, from the window at which slow start was over.
        const double packets =
            std::max(0.4 * std::pow(cubic_seconds_, 3), 0.53 * cubic_seconds_ / rtt_seconds_);
        window_bytes_ = 2 * kFirstWindowBytes + kPacketBytes * packets;
      }
      return seconds + 8 * bytes / bits_per_second_;
    }
    for (; window_bytes_ < full_bytes && window_bytes_ < bytes; window_bytes_ *= 2) {
      bytes -= window_bytes_;
      seconds += rtt_seconds_;
    }
    return (has_loss ? 4 : 1) * (seconds + 8 * bytes / bits_per_second_);
  }

  const double bits_per_second_, rtt_seconds_;
  const Begin begin_;
  const double loss_bytes_;
  double window_bytes_ = kFirstWindowBytes;
  double sent_bytes_ = 0;
  double cubic_seconds_ = 0;  // of sending
  wan::ShapedTransport shaped_;
};

// What two sites at the ends of the line measure, in a time that moves only to the next arrival.
// One message is under way at a time, so the figures do not depend on this machine.
std::vector<Links> measure_line(double bits_per_second, double rtt_seconds, Begin begin,
                                double loss_bytes = INFINITY) {
  FakeClock clock;
  std::vector<std::unique_ptr<LineEnd>> ends;
  for (auto& inner : wan::memory_mesh(2)) {
    ends.push_back(std::make_unique<LineEnd>(std::move(inner), bits_per_second, rtt_seconds, begin,
                                             loss_bytes, clock));
  }
  std::atomic<bool> is_over = false;
  std::thread mover([&] {
    while (!is_over) {
      double next_seconds = INFINITY;
      for (auto& end : ends) next_seconds = std::min(next_seconds, end->shaped().deliver());
      if (std::isfinite(next_seconds)) clock.sleep_until(next_seconds);
      std::this_thread::yield();
    }
  });
  auto links = wan::run_ranks(2, [&](int rank) -> Links {
    try {
      return measure_links(*ends[static_cast<std::size_t>(rank)], {}, clock, {});
    } catch (const PeerError&) {
      return std::nullopt;
    }
  });
  is_over = true;
  mover.join();
  return links;
}

}  // namespace

TEST_CASE("The rate that is told is that of the line, however long it is") {
  for (const double bits_per_second : {1e6, 10e6, 50e6}) {
    for (const double rtt_seconds : {0.0, 0.02, 0.08, 0.2}) {
      for (const auto begin : {Begin::kAtOnce, Begin::kSlowOnce}) {
        CAPTURE(bits_per_second, rtt_seconds, static_cast<int>(begin));
        for (const auto& links : measure_line(bits_per_second, rtt_seconds, begin)) {
          REQUIRE(links);
          CHECK(links->front().rtt_seconds.value() == Approx(rtt_seconds).margin(0.001));
          CHECK(links->front().bandwidth_bits_per_second.value() ==
                Approx(bits_per_second).epsilon(0.01));
        }
      }
    }
  }
}

TEST_CASE("A rate that is told lacks a tenth at most where each transfer begins slowly") {
  for (const double bits_per_second : {10e6, 50e6}) {
    for (const double rtt_seconds : {0.02, 0.05}) {
      CAPTURE(bits_per_second, rtt_seconds);
      for (const auto& links : measure_line(bits_per_second, rtt_seconds, Begin::kSlowAlways)) {
        REQUIRE(links);
        const double told = links->front().bandwidth_bits_per_second.value();
        CHECK(told >= 0.9 * bits_per_second);
        CHECK(told <= 1.001 * bits_per_second);
      }
    }
  }
}

TEST_CASE("A rate that still grows is waited for") {
  for (const auto& links : measure_line(50e6, 0.08, Begin::kCubic)) {
    REQUIRE(links);
    const double told = links->front().bandwidth_bits_per_second.value();
    CHECK(told >= 0.9 * 50e6);
    CHECK(told <= 1.001 * 50e6);
  }
}

TEST_CASE("A rate that falls by a loss is not told for the line's") {
  for (const double loss_bytes : {0.5e6, 1e6, 3e6}) {
    for (const auto begin : {Begin::kAtOnce, Begin::kSlowOnce}) {
      CAPTURE(loss_bytes, static_cast<int>(begin));
      for (const auto& links : measure_line(50e6, 0.08, begin, loss_bytes)) {
        REQUIRE(links);
        CHECK(links->front().bandwidth_bits_per_second.value() == Approx(50e6).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("After a loss at the limit the best rate before it is told") {
  // 2 MiB take 0.5 s, and 4 MiB with the loss 3.5 s, so that 8 MiB might take too long.
  for (const auto& links : measure_line(50e6, 0.05, Begin::kSlowAlways, 6e6)) {
    REQUIRE(links);
    const double told = links->front().bandwidth_bits_per_second.value();
    CHECK(told > 0.6 * 50e6);
    CHECK(told < 0.7 * 50e6);
  }
}

TEST_CASE("Every site measures the way to every other") {
  for (const int n : {1, 2, 3, 5}) {
    const auto transports = wan::memory_mesh(n);
    const auto links = measure_all(transports, {.seconds = 0.02, .most_bytes = 1 << 20});
    for (int rank = 0; rank < n; ++rank) {
      auto peers = wan::site_names(n);
      peers.erase(peers.begin() + rank);
      const auto& own = links[static_cast<std::size_t>(rank)];
      REQUIRE(own);
      REQUIRE(own->size() == peers.size());
      for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto& link = (*own)[i];
        CHECK(link.peer == peers[i]);
        CHECK(link.rtt_seconds.value() > 0);
        CHECK(link.rtt_seconds.value() < 1);
        CHECK(link.bandwidth_bits_per_second.value() > 1e6);
      }
    }
  }
}

TEST_CASE("A transfer stays within the bytes allowed") {
  for (const int64_t most : {int64_t{1}, int64_t{1000}, int64_t{1} << 16, int64_t{3} << 20}) {
    const auto transports = wan::memory_mesh(2);
    const auto links = measure_all(transports, {.seconds = 100, .most_bytes = most});
    CHECK(links[0]->front().bandwidth_bits_per_second.value() > 0);
    const auto sent = transports[0]->link(1).sent_bytes;
    CHECK(sent >= static_cast<uint64_t>(most) / 4);
    CHECK(sent <= static_cast<uint64_t>(most) + 1000);  // pings, sizes and answers
  }
}

TEST_CASE("A measurement of links ends at a stop and names a peer that is lost") {
  std::stop_source source;
  source.request_stop();
  const auto stopped = wan::memory_mesh(2);
  for (const auto& links : measure_all(stopped, {}, source.get_token())) CHECK(!links);

  const auto transports = wan::memory_mesh(3);
  transports[2]->abort("node3", "node3 is gone");
  const RealClock clock;
  CHECK(wan::peer_error([&] { measure_links(*transports[0], {}, clock, {}); }) ==
        "node3: node3 is gone");
}

TEST_CASE("The time to wait for a turn grows with the pairs") {
  CHECK(longest_turn_seconds(1, {.seconds = 1}) == 0);
  const double pair = longest_turn_seconds(2, {.seconds = 1});
  CHECK(pair > 4);
  CHECK(longest_turn_seconds(4, {.seconds = 1}) == Approx(6 * pair));
}

}  // namespace farstep::heterogeneity
