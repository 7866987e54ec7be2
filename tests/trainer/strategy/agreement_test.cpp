// That all sites hold the same theta_global, whatever the schedule.
#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep {
namespace {

TEST_CASE("after every sync all sites hold one theta_global") {
  struct Row {
    int num_sites;
    int64_t fragments, delay_steps;
    double alpha;
  };
  std::vector<Row> rows;
  for (const int num_sites : {1, 2, 3, 4}) {
    for (const int64_t fragments : {1, 2, 3, 5}) {
      for (const int64_t delay : {0, 1, 3}) {
        for (const double alpha : {0.0, 0.5}) rows.push_back({num_sites, fragments, delay, alpha});
      }
    }
  }
  for (const auto& row : rows) {
    auto run = strategy_run(row.num_sites, row.fragments, row.delay_steps, row.alpha, 15);
    run.sync.codec.kind = outer_optimizer::CodecKind::kInt4;
    run.sync.codec.block = 4;
    Sites sites(run, start_values(23));
    // Of every site, what it voted for after each sync; then whether theta_global is that where a
    // round has ended, and no other sync changes it.
    using Seen = std::pair<std::vector<std::string>, bool>;
    const auto seen = wan::run_ranks(row.num_sites, [&](int site) {
      auto& replica = *sites.replicas[static_cast<std::size_t>(site)];
      Seen own{{}, true};
      const auto look = [&](const std::vector<SyncRecord>& applied) {
        for (const auto& sync : applied) {
          own.first.push_back(sync.theta_hash);
          if (sync.id.fragment + 1 == row.fragments) {
            own.second &= sync.theta_hash == hash_of(replica.strategy.theta_global());
          }
        }
      };
      for (int64_t round = 1; round <= 3; ++round) {
        replica.run_round(
            round, 15 + 4 * site, [&](auto& theta) { wander(theta, site); }, look);
      }
      return own;
    });
    INFO(row.num_sites << " sites, " << row.fragments << " fragments, delay " << row.delay_steps);
    for (const auto& [hashes, votes_agree] : seen) {
      REQUIRE(std::ssize(hashes) == 3 * row.fragments);
      REQUIRE(hashes == seen[0].first);
      REQUIRE(votes_agree);
    }
  }
}

}  // namespace
}  // namespace farstep
