// The lab's packets, the emulating transport, the simulator and the planner agree on what messages
// take: all use the model of wan/link.
#include <deque>
#include <numeric>

#include "heterogeneity/plan/sync_plan.h"
#include "heterogeneity/simulate/network.h"
#include "outer_optimizer/schedule/partition.h"
#include "tests/support/catch.h"
#include "tests/support/fake_clock.h"
#include "tests/wan/transport/meshes.h"
#include "wan/emulate/shaped_transport.h"
#include "wan/lab/packet_link.h"
#include "wan/link/link_time.h"

using namespace farstep;
using namespace farstep::wan;

namespace {

struct Way {
  double bits_per_second = 0, delay_seconds = 0;
};
const std::vector<Way> kWays{{2e6, 0}, {20e6, 0.01}, {1e8, 0.15}};
constexpr int64_t kParameters = 300'001;  // 1.2 MB, which no number of pieces or sites divides

// All times are sums of some thousand numbers.
Approx exactly(double seconds) {
  return Approx(seconds).epsilon(1e-9);
}

// Sites in memory with emulated links, in a time of their own.
class EmulatedSites {
 public:
  EmulatedSites(int num_sites, const Way& way) {
    const LinkShape shape{.rate_bits_per_second = 1e12, .delay_seconds = way.delay_seconds};
    for (auto& inner : memory_mesh(num_sites)) {
      sites_.push_back(std::make_unique<ShapedTransport>(
          std::move(inner), shape,
          ShapedTransport::Options{.uplink_bits_per_second = way.bits_per_second}, clock_));
    }
  }

  void send(int from, int to, std::size_t bytes) {
    auto& message = messages_.emplace_back();
    message.sent.resize(bytes);
    message.received.resize(bytes);
    message.receive = sites_[to]->receive(from, {}, message.received);
    message.send = sites_[from]->send(to, {}, message.sent);
  }

  // The time when all that was sent has arrived.
  double wait() {
    for (;;) {
      double next_seconds = Uplink::kNever;
      for (auto& site : sites_) next_seconds = std::min(next_seconds, site->deliver());
      if (next_seconds == Uplink::kNever) break;
      clock_.sleep_until(next_seconds);
    }
    for (auto& message : messages_) {
      message.send->wait();
      message.receive->wait();
    }
    messages_.clear();
    return clock_.now_seconds();
  }

 private:
  struct Message {
    std::vector<std::byte> sent, received;
    std::unique_ptr<Transfer> receive, send;
  };

  FakeClock clock_;
  std::vector<std::unique_ptr<ShapedTransport>> sites_;
  std::deque<Message> messages_;
};

// When the last of the packets of `bytes` that enter a link together has arrived.
double packets_seconds(int64_t bytes, const Way& way) {
  PacketLink link({.rate_bits_per_second = way.bits_per_second,
                   .delay_seconds = way.delay_seconds,
                   .queue_seconds = 1e9},
                  1);
  double arrival = 0;
  for (int64_t left = bytes; left > 0; left -= 1500) {
    arrival = link.enter(0, std::min<int64_t>(left, 1500)).arrive_seconds;
  }
  return arrival;
}

// From Go at a site until it has the mean of fp32 values, among equal sites of a simulation.
double simulated_exchange_seconds(int num_sites, const Way& way) {
  heterogeneity::Scenario scenario;
  scenario.link = {.rtt_seconds = 2 * way.delay_seconds,
                   .bandwidth_bits_per_second = way.bits_per_second};
  for (int i = 0; i < num_sites; ++i) {
    auto& site = scenario.sites.emplace_back();
    site.name = "site" + std::to_string(i);
    site.profile.emplace();
  }
  scenario.coordinator = "site0";
  std::vector<std::size_t> present(static_cast<std::size_t>(num_sites));
  std::iota(present.begin(), present.end(), std::size_t{0});
  return heterogeneity::Network(scenario).sync_cost(present, kParameters).exchange_seconds.back();
}

// The planner's time of a sync without what it adds to the exchange.
double planned_exchange_seconds(int num_sites, const Way& way) {
  heterogeneity::SyncFacts facts{.parameters = kParameters,
                                 .num_sites = num_sites,
                                 .uplink_bits_per_second = way.bits_per_second,
                                 .rtt_seconds = 2 * way.delay_seconds};
  const double all = fragment_sync_seconds(facts, outer_optimizer::CodecKind::kFp32, 1);
  facts.uplink_bits_per_second = kUnlimitedRate;
  const double hops = 2 * way.delay_seconds;
  return all - fragment_sync_seconds(facts, outer_optimizer::CodecKind::kFp32, 1) + hops;
}

}  // namespace

TEST_CASE("one message takes the same time in packets and pieces and in closed form") {
  for (const auto& way : kWays) {
    for (const std::size_t bytes : {1, 1500, 64 << 10, 1'000'003}) {
      const double closed =
          message_seconds(static_cast<double>(bytes), way.bits_per_second, way.delay_seconds);
      CAPTURE(way.bits_per_second, bytes);
      CHECK(packets_seconds(static_cast<int64_t>(bytes), way) == exactly(closed));
      EmulatedSites sites(2, way);
      sites.send(0, 1, bytes);
      CHECK(sites.wait() == exactly(closed));
    }
  }
}

TEST_CASE("a reduce-scatter and all-gather takes the same time for all who use the model") {
  for (const auto& way : kWays) {
    for (const int num_sites : {2, 3, 5}) {
      CAPTURE(way.bits_per_second, num_sites);
      const double closed = reduce_gather_seconds(4.0 * kParameters, num_sites, way.bits_per_second,
                                                  way.delay_seconds);
      CHECK(planned_exchange_seconds(num_sites, way) == exactly(closed));

      // Parts are whole values: one site's is up to a value longer.
      const double value_seconds = 8.0 * 4 * num_sites / way.bits_per_second;
      CHECK(simulated_exchange_seconds(num_sites, way) ==
            Approx(closed).epsilon(0).margin(2 * value_seconds + 1e-9));

      EmulatedSites sites(num_sites, way);
      const auto part_of = [&](int site) {
        return static_cast<std::size_t>(
            4 * outer_optimizer::equal_part(kParameters, site, num_sites).size());
      };
      for (const bool gathers : {false, true}) {
        for (int from = 0; from < num_sites; ++from) {
          for (int to = 0; to < num_sites; ++to) {
            if (to != from) sites.send(from, to, part_of(gathers ? from : to));
          }
        }
        sites.wait();
      }
      CHECK(sites.wait() == Approx(closed).epsilon(0).margin(2 * value_seconds + 1e-9));
      // The packets of both phases, one after the other.
      const auto phase_bytes = 4 * kParameters * (num_sites - 1) / num_sites;
      CHECK(2 * packets_seconds(phase_bytes, way) ==
            Approx(closed).epsilon(0).margin(2 * value_seconds + 1e-9));
    }
  }
}
