// Packets through the router, at times worked out by hand.
#include "wan/lab/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/wan/lab/ipv4_packet.h"
#include "wan/lab/lab_counters.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

constexpr uint32_t kSubnet = 0x0a4d0000;
constexpr double kNever = std::numeric_limits<double>::infinity();

// A lab whose time is ours.
class FakeLab {
 public:
  struct Arrival {
    double seconds;
    std::size_t site;
    std::vector<std::byte> packet;
  };

  explicit FakeLab(const std::vector<LinkShape>& sites) : router_({.sites = sites}) {}

  void send(std::size_t site, const std::vector<std::byte>& packet, double now_seconds) {
    std::copy(packet.begin(), packet.end(), router_.room().begin());
    router_.accept(site, packet.size(), now_seconds);
  }

  // Runs until nothing is under way.
  std::vector<Arrival> run() {
    std::vector<Arrival> arrivals;
    while (router_.next_due_seconds() < kNever) {
      const double now_seconds = router_.next_due_seconds();
      router_.deliver(now_seconds, [&](std::size_t site, std::span<const std::byte> packet) {
        arrivals.push_back({now_seconds, site, {packet.begin(), packet.end()}});
      });
    }
    return arrivals;
  }

  Router& router() { return router_; }

 private:
  Router router_;
};

// 1250 bytes take 10 ms at 1 Mbit/s.
LinkShape link(double rate_bits_per_second, double delay_seconds) {
  return {.rate_bits_per_second = rate_bits_per_second, .delay_seconds = delay_seconds};
}

uint32_t address(std::size_t site) {
  return kSubnet + static_cast<uint32_t>(site) + 1;
}

}  // namespace

TEST_CASE("a packet passes the uplink of its sender and the downlink of its receiver") {
  FakeLab lab({link(1e6, 0.02), link(2e6, 0.03), link(1e9, 0)});
  const auto packet = ipv4_packet(address(1), 1250, 42);
  lab.send(0, packet, 5);
  const auto arrivals = lab.run();
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].site == 1);
  CHECK(arrivals[0].packet == packet);
  // 10 ms at the uplink's rate and its 20 ms, 5 ms at the downlink's and its 30 ms.
  CHECK(arrivals[0].seconds == Approx(5.065));
}

TEST_CASE("two senders share the downlink of their receiver") {
  FakeLab lab({link(1e9, 0.01), link(1e9, 0.01), link(1e6, 0.01)});
  for (int i = 0; i < 4; ++i) {
    lab.send(0, ipv4_packet(address(2), 1250), 0);
    lab.send(1, ipv4_packet(address(2), 1250), 0);
  }
  const auto arrivals = lab.run();
  REQUIRE(arrivals.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(arrivals[i].seconds == Approx(0.02 + 0.01 * static_cast<double>(i + 1)).margin(1e-4));
  }
}

TEST_CASE("a caller that comes late changes no time but that of the delivery") {
  FakeLab lab({link(1e6, 0.01), link(1e6, 0.01)});
  lab.send(0, ipv4_packet(address(1), 1250), 0);
  lab.send(0, ipv4_packet(address(1), 1250), 0);
  std::size_t arrivals = 0;
  const auto count = [&](std::size_t, std::span<const std::byte>) { ++arrivals; };
  lab.router().deliver(0.0399, count);
  CHECK(arrivals == 0);
  CHECK(lab.router().next_due_seconds() == Approx(0.04));
  lab.router().deliver(0.0401, count);
  CHECK(arrivals == 1);
  CHECK(lab.router().next_due_seconds() == Approx(0.05));
  lab.router().deliver(7, count);
  CHECK(arrivals == 2);
  CHECK(lab.router().next_due_seconds() == kNever);
}

TEST_CASE("packets of every size arrive whole and in order") {
  FakeLab lab({{.rate_bits_per_second = 1e6, .delay_seconds = 0.1, .queue_seconds = 1e9},
               {.rate_bits_per_second = 1e7, .delay_seconds = 0.1, .queue_seconds = 1e9}});
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t i = 0; i < 3000; ++i) {  // more than a slab of the pool
    sent.push_back(ipv4_packet(address(1), 20 + i * 7 % 1481, static_cast<int>(i)));
    lab.send(0, sent.back(), 0);
  }
  const auto arrivals = lab.run();
  REQUIRE(arrivals.size() == sent.size());
  CHECK(
      std::equal(sent.begin(), sent.end(), arrivals.begin(),
                 [](const auto& packet, const auto& arrival) { return packet == arrival.packet; }));
}

TEST_CASE("packets that are not for a site are counted and dropped") {
  FakeLab lab({link(1e6, 0), link(1e6, 0)});
  for (const uint32_t nobody : {kSubnet, address(2), kSubnet + 255, 0x08080808U, 0xe00000fbU}) {
    lab.send(0, ipv4_packet(nobody, 100), 0);
  }
  lab.send(1, std::vector<std::byte>(1, std::byte{0x60}), 0);
  lab.send(1, std::vector<std::byte>(1500), 0);
  CHECK(lab.run().empty());
  const auto counters = lab.router().counters();
  CHECK(counters.sites[0].no_such_site == PacketCount{5, 500});
  CHECK(counters.sites[1].malformed == PacketCount{2, 1501});
  CHECK(counters.sites[0].up == PacketCounters{});
  CHECK(counters.sites[1].up == PacketCounters{});
}

TEST_CASE("a site reaches itself through its own link") {
  FakeLab lab({link(1e6, 0.01)});
  lab.send(0, ipv4_packet(address(0), 1250), 0);
  const auto arrivals = lab.run();
  REQUIRE(arrivals.size() == 1);
  CHECK(arrivals[0].seconds == Approx(0.04));
}

TEST_CASE("counters say what became of every packet") {
  FakeLab lab({{.rate_bits_per_second = 1e6, .loss = 0.5, .queue_seconds = 1e9},
               {.rate_bits_per_second = 1e6, .loss = 0.2, .queue_seconds = 1e9}});
  for (int i = 0; i < 10'000; ++i) lab.send(0, ipv4_packet(address(1), 50), 0);
  const auto arrived = static_cast<int64_t>(lab.run().size());
  const auto counters = lab.router().counters();
  const auto& up = counters.sites[0].up;
  const auto& down = counters.sites[1].down;
  CHECK(up.passed.packets + up.lost.packets == 10'000);
  CHECK(down.passed.packets + down.lost.packets == up.passed.packets);
  CHECK(down.passed == PacketCount{arrived, 50 * arrived});
  CHECK(static_cast<double>(arrived) == Approx(10'000 * 0.5 * 0.8).margin(5 * 50));
  const auto table = counters_table(counters);
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);
}

TEST_CASE("links lose packets independently of each other") {
  FakeLab lab({{.rate_bits_per_second = 1e9, .loss = 0.5, .queue_seconds = 1e9},
               {.rate_bits_per_second = 1e9, .loss = 0.5, .queue_seconds = 1e9}});
  for (int i = 0; i < 1000; ++i) {
    lab.send(0, ipv4_packet(address(1), 50), 0);
    lab.send(1, ipv4_packet(address(0), 50), 0);
  }
  // A quarter of each way's packets: half of those that passed the uplink.
  CHECK(static_cast<double>(lab.run().size()) == Approx(500).margin(100));
}
