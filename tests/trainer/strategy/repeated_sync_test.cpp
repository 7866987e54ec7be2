// Syncs that lose a site in the middle of the exchange, and are repeated by the others.
#include <functional>
#include <map>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/dying_transport.h"
#include "tests/trainer/strategy/replica.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

// Several chunks of any codec for each of three sites.
constexpr std::size_t kValues = 2'400'000;

// A site's exchange, by generation.
class OfGenerations : public outer_optimizer::Exchange {
 public:
  void average(const outer_optimizer::SyncPoint& point, std::span<float> values,
               const outer_optimizer::ResidualSpans& residuals) override {
    exchanges.at(point.generation)->average(point, values, residuals);
  }
  void average_parts(const outer_optimizer::SyncPoint&,
                     std::span<const std::vector<outer_optimizer::Range>>,
                     outer_optimizer::FinalParts&, std::span<float>) override {
    throw InternalError("deltas do not come in parts");
  }
  std::map<int64_t, std::unique_ptr<outer_optimizer::DirectExchange>> exchanges;
};

using Transports = std::vector<std::unique_ptr<wan::Transport>>;

uint64_t sent_bytes(const Transports& transports) {
  uint64_t sum = 0;
  for (const auto& transport : transports) sum += transport->uplink().sent_bytes;
  return sum;
}

// What is left of a run in the end.
struct Left {
  std::vector<std::vector<float>> theta_global;
  uint64_t sent_bytes = 0;  // without the lost site
};

// Three sites do a round. The last one dies when it has sent so many messages, and the others do
// two more rounds.
Left lose_the_last(const RunConfig& run, int64_t last_send) {
  const auto start = start_values(kValues);
  Meeting meeting(3);
  meeting.let_others_go_on();
  Transports first = connect_in_memory({"s0", "s1", "s2"}, 10);
  Transports second = connect_in_memory({"s0", "s1"}, 10);
  DyingTransport dying(first, 2, last_send);
  const TemporaryFolder folder;
  auto theta = wan::run_ranks(3, [&](int rank) -> std::vector<float> {
    const auto place = static_cast<std::size_t>(rank);
    const auto seat = meeting.seat(rank);
    OfGenerations exchange;
    auto& transport = rank == 2 ? static_cast<wan::Transport&>(dying) : *first[place];
    exchange.exchanges[1] =
        std::make_unique<outer_optimizer::DirectExchange>(transport, std::size_t{1} << 20);
    if (rank < 2) {
      exchange.exchanges[2] = std::make_unique<outer_optimizer::DirectExchange>(*second[place]);
    }
    Replica replica(run, rank, start, *seat, exchange, folder.path(), 3);
    const auto move = [&](auto& values) { wander(values, rank); };
    try {
      for (int64_t round = 1; round <= 3; ++round) replica.run_round(round, 2, move);
    } catch (const PeerError& error) {
      CHECK(error.site() == "s2");
      CHECK(rank == 2);
      meeting.lose("s2");
    }
    const auto global = replica.strategy.theta_global();
    return {global.begin(), global.end()};
  });
  theta.pop_back();
  return {.theta_global = theta, .sent_bytes = sent_bytes(second)};
}

TEST_CASE("what has come before a site was lost is not sent again, and changes no bit") {
  for (const auto kind : {outer_optimizer::CodecKind::kFp32, outer_optimizer::CodecKind::kInt8}) {
    auto run = strategy_run(3, 1, 0, 0, 2);
    run.sync.codec = {.kind = kind, .error_feedback = false};
    const auto at_once = lose_the_last(run, 0);
    const auto later = lose_the_last(run, 20);
    REQUIRE(later.theta_global[0] == later.theta_global[1]);
    CHECK(later.theta_global == at_once.theta_global);
    CHECK(later.sent_bytes < at_once.sent_bytes);
  }
}

TEST_CASE("error feedback goes on over a repeated sync, with the same values at all sites") {
  for (const int64_t fragments : {1, 3}) {
    auto run = strategy_run(3, fragments, 0, 0, 3);
    run.sync.codec = {.kind = outer_optimizer::CodecKind::kInt4};
    const auto end = lose_the_last(run, 14);
    CHECK(end.theta_global[0] == end.theta_global[1]);
  }
}

}  // namespace
}  // namespace farstep
