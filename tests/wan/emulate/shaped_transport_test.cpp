#include "wan/emulate/shaped_transport.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <ostream>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/wan/transport/meshes.h"

using namespace farstep;
using namespace farstep::wan;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr double kPieceASecond = 8.0 * kPiece;  // bits a second; every time below is exact

// What reached the transport below, and when.
struct Arrival {
  double seconds;
  int peer;
  uint32_t chunk;
  bool operator==(const Arrival&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const Arrival& arrival) {
  return stream << "chunk " << arrival.chunk << " at " << arrival.peer << " after "
                << arrival.seconds << " s";
}

// Passes everything on and notes the messages that are sent.
class Witness : public Transport {
 public:
  Witness(std::unique_ptr<Transport> inner, const Clock& clock)
      : inner_(std::move(inner)), clock_(clock) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& site(int rank) const override { return inner_->site(rank); }
  std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                 std::span<const std::byte> bytes) override {
    if (!bytes.empty()) {
      const std::lock_guard lock(mutex_);
      arrivals_.push_back({clock_.now_seconds(), peer, tag.chunk});
    }
    return inner_->send(peer, tag, bytes);
  }
  std::unique_ptr<Transfer> receive(int peer, const Tag& tag, std::span<std::byte> bytes) override {
    return inner_->receive(peer, tag, bytes);
  }
  void abort(const std::string& site, const std::string& reason) override {
    inner_->abort(site, reason);
  }
  LinkState link(int peer) const override { return inner_->link(peer); }

  std::vector<Arrival> arrivals() {
    const std::lock_guard lock(mutex_);
    return arrivals_;
  }

 private:
  const std::unique_ptr<Transport> inner_;
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Arrival> arrivals_;
};

// N sites in memory whose links all have one shape, in a time that the test moves. Receives of all
// that is sent are posted, so that no wait() of a send depends on another thread.
class Wan {
 public:
  Wan(int n, const LinkShape& shape, const ShapedTransport::Options& options) {
    for (auto& inner : memory_mesh(n)) {
      auto witness = std::make_unique<Witness>(std::move(inner), clock);
      witnesses_.push_back(witness.get());
      sites_.push_back(
          std::make_unique<ShapedTransport>(std::move(witness), shape, options, clock));
    }
  }

  ShapedTransport& operator[](int rank) { return *sites_[static_cast<std::size_t>(rank)]; }
  std::vector<Arrival> arrivals_from(int rank) {
    return witnesses_[static_cast<std::size_t>(rank)]->arrivals();
  }

  void send(int from, int to, std::size_t bytes, uint32_t chunk) {
    auto& parcel = parcels_.emplace_back(
        Parcel{pattern(from, to, bytes, static_cast<int>(chunk)), std::vector<std::byte>(bytes)});
    const Tag tag{.chunk = chunk};
    parcel.receive = (*this)[to].receive(from, tag, parcel.incoming);
    parcel.send = (*this)[from].send(to, tag, parcel.outgoing);
  }

  // Moves time from event to event, up to `until_seconds`.
  void run_until(double until_seconds) {
    for (;;) {
      double next_seconds = INFINITY;
      for (auto& site : sites_) next_seconds = std::min(next_seconds, site->deliver());
      if (next_seconds > until_seconds) return clock.sleep_until(until_seconds);
      clock.sleep_until(next_seconds);
    }
  }

  // Waits for all transfers; whether every message came as it was sent.
  bool all_arrived() {
    bool is_right = true;
    for (auto& parcel : parcels_) {
      parcel.send->wait();
      parcel.receive->wait();
      is_right &= parcel.incoming == parcel.outgoing;
    }
    return is_right;
  }

  FakeClock clock;

 private:
  struct Parcel {
    std::vector<std::byte> outgoing, incoming;
    std::unique_ptr<Transfer> send = nullptr, receive = nullptr;
  };

  std::vector<Witness*> witnesses_;
  std::vector<std::unique_ptr<ShapedTransport>> sites_;
  std::deque<Parcel> parcels_;
};

using Arrivals = std::vector<Arrival>;

}  // namespace

TEST_CASE("a message arrives after its bytes at the rate and the delay") {
  for (const std::size_t bytes : {std::size_t{1}, kPiece / 2, kPiece, kPiece + 4096, 5 * kPiece}) {
    Wan wan(2, {.rate_bits_per_second = kPieceASecond, .delay_seconds = 0.25}, {});
    wan.clock.advance(2);
    wan.send(0, 1, bytes, 7);
    const double seconds = static_cast<double>(bytes) / kPiece + 0.25;
    CAPTURE(bytes);
    wan.run_until(std::nextafter(2 + seconds, 0));
    CHECK(wan.arrivals_from(0).empty());
    wan.run_until(2 + seconds);
    CHECK(wan.arrivals_from(0) == Arrivals{{2 + seconds, 1, 7}});
    CHECK(wan.all_arrived());
    CHECK(wan[0].link(1).sent_bytes == bytes);
    CHECK(wan[1].link(0).received_bytes == bytes);
  }
}

TEST_CASE("messages to one peer leave one after the other and travel together") {
  Wan wan(2, {.rate_bits_per_second = kPieceASecond, .delay_seconds = 10}, {});
  for (uint32_t chunk = 0; chunk < 3; ++chunk) wan.send(0, 1, kPiece, chunk);
  wan.run_until(20);
  CHECK(wan.arrivals_from(0) == Arrivals{{11, 1, 0}, {12, 1, 1}, {13, 1, 2}});
  wan.send(0, 1, kPiece, 3);  // the link had been idle since 3 s
  wan.run_until(40);
  CHECK(wan.arrivals_from(0).back() == Arrival{31, 1, 3});
  CHECK(wan.all_arrived());
}

TEST_CASE("the two directions of a link do not share its rate") {
  Wan wan(2, {.rate_bits_per_second = kPieceASecond, .delay_seconds = 0.5}, {});
  wan.send(0, 1, 4 * kPiece, 0);
  wan.send(1, 0, 2 * kPiece, 0);
  wan.run_until(9);
  CHECK(wan.arrivals_from(0) == Arrivals{{4.5, 1, 0}});
  CHECK(wan.arrivals_from(1) == Arrivals{{2.5, 0, 0}});
  CHECK(wan.all_arrived());
}

TEST_CASE("peers take turns at the uplink piece by piece") {
  Wan wan(3, {.rate_bits_per_second = INFINITY, .delay_seconds = 0.5},
          {.uplink_bits_per_second = kPieceASecond});
  wan.send(0, 1, 3 * kPiece, 0);
  wan.send(0, 2, kPiece, 0);
  wan.send(0, 2, 3 * kPiece, 1);
  wan.run_until(20);
  // Pieces to 1 2 1 2 1 2 2: no big message holds up a small one.
  CHECK(wan.arrivals_from(0) == Arrivals{{2.5, 2, 0}, {5.5, 1, 0}, {7.5, 2, 1}});
  CHECK(wan.all_arrived());
}

TEST_CASE("a link tells how long something was leaving over it") {
  Wan wan(3, {.rate_bits_per_second = INFINITY, .delay_seconds = 0.5},
          {.uplink_bits_per_second = kPieceASecond});
  const auto sending = [&](int peer) { return wan[0].link(peer).sending_seconds; };
  CHECK(sending(1) == 0);
  CHECK(wan[0].link(1).rtt_seconds == 1);
  CHECK(wan[0].link(1).least_rtt_seconds == 1);
  wan.clock.advance(5);
  wan.send(0, 1, 2 * kPiece, 0);
  wan.send(0, 2, kPiece, 0);  // pieces to 1 2 1
  wan.run_until(6);
  CHECK(sending(1) == 1);
  CHECK(wan[0].uplink().sending_seconds == 1);
  wan.run_until(20);
  CHECK(sending(1) == 3);
  CHECK(sending(2) == 2);
  CHECK(wan[0].uplink().sending_seconds == 3);
  wan.send(0, 1, kPiece, 1);
  wan.send(0, 1, kPiece, 2);  // while the one before it is leaving
  wan.run_until(21);
  wan.send(0, 2, kPiece, 1);
  wan.run_until(40);
  CHECK(sending(1) == 5);
  CHECK(sending(2) == 4);  // from 21 s to 23 s
  CHECK(wan[0].uplink().sending_seconds == 6);
  CHECK(wan[0].uplink().rtt_seconds == 1);
  CHECK(wan.all_arrived());
  CHECK(8 * wan[0].uplink().sent_bytes == 6 * kPieceASecond);
  CHECK(wan[1].uplink().sending_seconds == 0);
}

TEST_CASE("a link tells what it lost") {
  const LinkShape shape{.rate_bits_per_second = kPieceASecond, .delay_seconds = 0.5, .loss = 1};
  Wan wan(2, shape, {});
  wan.send(0, 1, 3000, 0);
  wan.run_until(10);
  CHECK(wan.all_arrived());
  CHECK(wan[0].link(1).retransmitted_bytes == 3 * 1460);
  CHECK(wan[1].link(0).retransmitted_bytes == 0);
}

TEST_CASE("a link slower than the uplink leaves the rest of it to the others") {
  Wan wan(3, {.rate_bits_per_second = INFINITY}, {.uplink_bits_per_second = 4 * kPieceASecond});
  wan[0].set_shape(1, {.rate_bits_per_second = kPieceASecond});
  wan.send(0, 1, 3 * kPiece, 0);
  wan.send(0, 2, 9 * kPiece, 0);
  wan.run_until(20);
  // The slow link's pieces start at 0, 1 and 2 s, each for a quarter of a second of the uplink.
  CHECK(wan.arrivals_from(0) == Arrivals{{3, 1, 0}, {3, 2, 0}});
  CHECK(wan.all_arrived());
}

TEST_CASE("a lost packet makes its link stand still for a round trip") {
  const LinkShape shape{.rate_bits_per_second = INFINITY, .delay_seconds = 0.5};
  auto lossy = shape;
  lossy.loss = 1;
  Wan wan(3, shape, {.uplink_bits_per_second = kPieceASecond});
  wan[0].set_shape(1, lossy);
  wan.send(0, 1, 2 * kPiece, 0);
  wan.send(0, 2, kPiece, 0);
  wan.run_until(20);
  // To 1 from 0 to 1 s, then a second of silence, which 2 uses; and the same again.
  CHECK(wan.arrivals_from(0) == Arrivals{{2.5, 2, 0}, {4.5, 1, 0}});
  CHECK(wan.all_arrived());
}

TEST_CASE("losses come as often as said and at the same places for the same seed") {
  const int num_packets = 2000;
  const auto losses = [&](uint64_t seed, double rate) {
    Wan wan(2, {.rate_bits_per_second = rate, .delay_seconds = 1, .loss = 0.05}, {.seed = seed});
    for (int i = 0; i < num_packets; ++i) wan.send(0, 1, 1460, static_cast<uint32_t>(i));
    wan.run_until(1e9);
    std::vector<bool> lost;
    double before_seconds = 1;
    for (const auto& arrival : wan.arrivals_from(0)) {
      lost.push_back(arrival.seconds - before_seconds > 2);
      before_seconds = arrival.seconds;
    }
    CHECK(wan.all_arrived());
    return lost;
  };
  const auto lost = losses(1, 1e9);
  const auto count = std::ranges::count(lost, true);
  CHECK(lost.size() == num_packets);
  CHECK(count > 60);  // 100 expected, 10 is one standard deviation
  CHECK(count < 140);
  CHECK(losses(1, 1e6) == lost);
  CHECK(losses(2, 1e9) != lost);
}

TEST_CASE("a cut holds up what has not left until it is healed") {
  const LinkShape shape{.rate_bits_per_second = kPieceASecond, .delay_seconds = 4};
  auto cut = shape;
  cut.is_cut = true;
  Wan wan(3, shape, {.stall_seconds = 100});
  for (uint32_t chunk = 0; chunk < 3; ++chunk) wan.send(0, 1, kPiece, chunk);
  wan.send(0, 2, kPiece, 0);
  wan.run_until(1.5);
  wan[0].set_shape(1, cut);  // in the middle of chunk 1
  wan.run_until(50);
  CHECK(wan.arrivals_from(0) == Arrivals{{5, 1, 0}, {5, 2, 0}, {6, 1, 1}});
  wan[0].set_shape(1, shape);
  wan.run_until(60);
  CHECK(wan.arrivals_from(0).back() == Arrival{55, 1, 2});
  CHECK(wan.all_arrived());
}

TEST_CASE("a cut that lasts ends the transport and names the peer") {
  const LinkShape shape{.rate_bits_per_second = kPieceASecond};
  auto cut = shape;
  cut.is_cut = true;
  Wan wan(2, shape, {.stall_seconds = 5});
  std::vector<std::byte> memory(100), target(100);
  auto receive = wan[1].receive(0, {}, target);
  wan.clock.advance(10);
  wan[0].set_shape(1, cut);
  wan.run_until(30);  // nothing to send, so nothing stalls
  auto send = wan[0].send(1, {}, memory);
  CHECK(wan[0].deliver() == 35);
  wan.run_until(34.9);
  wan.run_until(35);
  const auto error = peer_error([&] { send->wait(); });
  CHECK_THAT(error, StartsWith("node2: ") && Contains("no byte from node1 to node2 for 5 s"));
  CHECK(peer_error([&] { wan[0].send(1, {}, memory); }) == error);
  CHECK_THAT(peer_error([&] { receive->wait(); }), StartsWith("node1: "));
  CHECK(wan[0].deliver() == INFINITY);
}

TEST_CASE("a new shape holds for what has not begun to leave") {
  Wan wan(2, {.rate_bits_per_second = kPieceASecond, .delay_seconds = 10}, {});
  wan.send(0, 1, kPiece, 0);
  wan.send(0, 1, 4 * kPiece, 1);
  wan.run_until(1.5);  // the first piece of chunk 1 is half out
  wan[0].set_shape(1, {.rate_bits_per_second = 2 * kPieceASecond, .delay_seconds = 1});
  wan.run_until(20);
  // Out at 2, 2.5, 3 and 3.5 s, and not before the piece that took the long way.
  CHECK(wan.arrivals_from(0) == Arrivals{{11, 1, 0}, {12, 1, 1}});
  wan.send(0, 1, kPiece, 2);
  wan.run_until(30);
  CHECK(wan.arrivals_from(0).back() == Arrival{21.5, 1, 2});
  CHECK(wan.all_arrived());
  CHECK_THROWS_AS(wan[0].set_shape(0, {}), InternalError);
  CHECK_THROWS_AS(wan[0].set_shape(2, {}), InternalError);
}

TEST_CASE("an empty message takes no time and a wrong peer is refused") {
  Wan wan(2, {.delay_seconds = 1}, {});
  wan[0].send(1, {}, {})->wait();
  const std::vector<std::byte> memory(1);
  CHECK_THROWS_AS(wan[0].send(0, {}, memory), InternalError);
  CHECK_THROWS_AS(wan[0].send(2, {}, memory), InternalError);
}

TEST_CASE("a message given up before it left ends the transport on both sides") {
  Wan wan(2, {.delay_seconds = 1}, {});
  std::vector<std::byte> memory(100), target(100);
  auto receive = wan[1].receive(0, {}, target);
  wan[0].send(1, {}, memory).reset();
  CHECK_THAT(peer_error([&] { wan[0].send(1, {}, memory); }),
             StartsWith("node2: ") && Contains("given up"));
  CHECK_THAT(peer_error([&] { receive->wait(); }), StartsWith("node1: "));
  wan.run_until(10);
  CHECK(wan.arrivals_from(0).empty());
}

TEST_CASE("a send that waits for its time notices that its peer is gone") {
  RealClock clock;
  auto mesh = memory_mesh(2);
  ShapedTransport shaped(std::move(mesh[0]), {.delay_seconds = 1000}, {}, clock);
  const std::vector<std::byte> memory(100);
  const auto send = shaped.send(1, {}, memory);
  std::thread leaving([&] { mesh[1].reset(); });
  CHECK_THAT(peer_error([&] { send->wait(); }), StartsWith("node2: "));
  leaving.join();
}

TEST_CASE("in real time a message takes as long as said") {
  RealClock clock;
  auto mesh = memory_mesh(2);
  ShapedTransport shaped(std::move(mesh[0]), {.rate_bits_per_second = 8e6, .delay_seconds = 0.02},
                         {}, clock);
  const auto outgoing = pattern(0, 1, 100'000);
  std::vector<std::byte> incoming(outgoing.size());
  const double start = clock.now_seconds();
  const auto receive = mesh[1]->receive(0, {}, incoming);
  const auto send = shaped.send(1, {}, outgoing);
  receive->wait();
  const double seconds = clock.now_seconds() - start;
  send->wait();
  CHECK(seconds >= 0.12);
  CHECK(seconds < 1);  // 0.12 and a little, on a machine with time for it
  CHECK(incoming == outgoing);
}
