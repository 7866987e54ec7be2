// Deltas that are out of proportion, among sites with the real strategy, and judged by the real
// rules.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

constexpr int64_t kSteps = 12;

// What becomes of three sites. Site 1 is broken in `round`.
enum class Fault { kNone, kAbsent, kBroken };

struct End {
  std::vector<std::string> hashes;  // of theta_global, by round
  std::vector<float> theta;         // theta_local
  std::vector<bool> begins_anew;    // by round
  std::vector<wan::Outlier> outliers;
  std::vector<double> weights;
  bool operator==(const End&) const = default;
};

double distance(const std::vector<float>& one, const std::vector<float>& other) {
  double squares = 0;
  for (std::size_t k = 0; k < one.size(); ++k) squares += std::pow(one[k] - other[k], 2);
  return std::sqrt(squares);
}

template <typename AnySites = Sites>
std::vector<End> ends_of(const RunConfig& run, int64_t rounds, int64_t broken_round, Fault fault) {
  AnySites sites(run, start_values(500));
  sites.meeting.judge_by(served_run(run).judge);
  return wan::run_ranks(static_cast<int>(run.sites.size()), [&](int rank) {
    End end;
    auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
    for (int64_t round = 1; round <= rounds; ++round) {
      const bool is_fault = rank == 1 && round == broken_round;
      Synced synced;
      const auto keep = [&](Synced more) {
        synced.begins_anew |= more.begins_anew;
        for (auto& sync : more.applied) {
          end.outliers.insert(end.outliers.end(), sync.outliers.begin(), sync.outliers.end());
          end.weights.push_back(sync.averaging_weight);
        }
      };
      if (is_fault && fault == Fault::kAbsent) {
        keep(replica.attend(round, kSteps));
      } else {
        keep(replica.begin(round, kSteps));
        while (replica.steps_done < kSteps) {
          keep(replica.step([&](auto& theta) {
            wander(theta, rank);
            // The last step that reaches the first sync.
            if (is_fault && fault == Fault::kBroken && replica.steps_done == 0) theta[7] = 1e6F;
          }));
        }
        keep(replica.end());
        replica.steps_done = 0;
      }
      end.begins_anew.push_back(synced.begins_anew);
      end.hashes.push_back(hash_of(replica.strategy.theta_global()));
    }
    end.theta = replica.theta;
    return end;
  });
}

TEST_CASE("a run in which a delta is left out has the bits of one without that site's round") {
  for (const auto codec : {outer_optimizer::CodecKind::kFp32, outer_optimizer::CodecKind::kInt8}) {
    for (const int64_t delay : {0, 3}) {
      auto run = strategy_run(3, 1, delay, 0, kSteps);
      run.sync.codec.kind = codec;
      CAPTURE(name_of(codec), delay);
      const auto broken = ends_of(run, 7, 5, Fault::kBroken);
      const auto absent = ends_of(run, 7, 5, Fault::kAbsent);
      const auto sound = ends_of(run, 7, 5, Fault::kNone);
      for (std::size_t site = 0; site < 3; ++site) {
        CHECK(broken[site].hashes == broken[0].hashes);
        CHECK(broken[site].hashes != sound[site].hashes);
        // A site that attends has dropped the residual of its means before, not after.
        if (codec == outer_optimizer::CodecKind::kFp32) {
          CHECK(broken[site].hashes == absent[site].hashes);
          CHECK(broken[site].theta == absent[site].theta);
        } else {
          CHECK(distance(broken[site].theta, absent[site].theta) <
                0.1 * distance(broken[site].theta, sound[site].theta));
        }
        CHECK(sound[site].outliers.empty());
        REQUIRE(broken[site].outliers.size() == 1);
        CHECK(broken[site].outliers[0].site == "s1");
        CHECK(broken[site].outliers[0].is_left_out);
        CHECK(broken[site].weights[4] == (site == 1 ? 0 : 0.5));
        CHECK(std::ranges::count(broken[site].begins_anew, true) == (site == 1 ? 1 : 0));
      }
      CHECK(broken[1].begins_anew[4]);
    }
  }
}

TEST_CASE(
    "of several fragments the first fault is left out and the others lose its round's steps") {
  auto run = strategy_run(3, 3, 0, 0, kSteps);
  const auto ends = ends_of(run, 7, 5, Fault::kBroken);
  for (std::size_t site = 0; site < 3; ++site) {
    REQUIRE(ends[site].outliers.size() == 1);
    CHECK(ends[site].hashes == ends[0].hashes);
    CHECK(std::ranges::max(ends[site].theta) < 100);
  }
  // Fragment 0 after 4 steps of 12. Then 4 and 8 of the 8 and 12 steps since the round before are
  // gone, and later nothing is.
  const auto& weights = ends[1].weights;
  CHECK(weights[12] == 0);
  CHECK(weights[13] == Approx(4.0 / 12 / (2 + 4.0 / 12)));
  CHECK(weights[14] == Approx(8.0 / 12 / (2 + 8.0 / 12)));
  CHECK(weights[15] == Approx(1.0 / 3));
}

TEST_CASE("eager updates leave a delta out in the round after, and its site drops that round") {
  auto run = strategy_run(3, 1, 0, 0, kSteps);
  run.outer.rounds = 8;
  const auto ends = ends_of<EagerSites>(run, 8, 5, Fault::kBroken);
  for (std::size_t site = 0; site < 3; ++site) {
    REQUIRE(ends[site].outliers.size() == 1);
    CHECK(ends[site].hashes == ends[0].hashes);
    CHECK(ends[site].theta == ends[0].theta);  // the run is over
    CHECK(std::ranges::max(ends[site].theta) < 100);
  }
  CHECK(ends[1].begins_anew ==
        std::vector<bool>{false, false, false, false, false, true, false, false});
  CHECK(ends[1].weights ==
        std::vector<double>{1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0, 1.0 / 3, 1.0 / 3});
}

TEST_CASE("with warn a delta out of proportion counts and with off nobody says a word") {
  for (const auto rule :
       {outer_optimizer::OutlierRule::kWarn, outer_optimizer::OutlierRule::kOff}) {
    auto run = strategy_run(3, 1, 0, 0, kSteps);
    run.sync.outliers = rule;
    const auto ends = ends_of(run, 5, 5, Fault::kBroken);
    CHECK(ends[1].outliers.size() == (rule == outer_optimizer::OutlierRule::kWarn ? 1 : 0));
    CHECK(ends[1].weights[4] == Approx(1.0 / 3));
    CHECK(std::ranges::max(ends[1].theta) > 1e4);
  }
}

TEST_CASE("if more than half of the deltas are out of proportion all sites end before a step") {
  auto run = strategy_run(3, 1, 0, 0, kSteps);
  Sites sites(run, start_values(50));
  sites.meeting.judge_by([](std::span<const std::string>, std::span<const wan::Contribution>) {
    return std::vector<wan::Outlier>{{"s0", true, "is odd"}, {"s2", true, "is broken"}};
  });
  const auto start = hash_of(start_values(50));
  const auto ends = wan::run_ranks(3, [&](int rank) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
    std::string message;
    try {
      replica.run_round(1, kSteps, [&](auto& theta) { wander(theta, rank); });
    } catch (const DivergenceError& error) {
      message = error.what();
    }
    return std::pair(message, hash_of(replica.strategy.theta_global()));
  });
  for (const auto& [message, hash] : ends) {
    CHECK_THAT(message, Catch::Contains("2 of 3 deltas are out of proportion") &&
                            Catch::Contains("s0's is odd; s2's is broken"));
    CHECK(hash == start);
  }
}

// Of rounds 2 and 3, and of 5, 6 and 7.
TEST_CASE("a site whose deltas are left out in three rounds in a row leaves") {
  auto run = strategy_run(3, 1, 0, 0, kSteps);
  Sites sites(run, start_values(50));
  sites.meeting.judge_by(served_run(run).judge);
  const auto ends = wan::run_ranks(3, [&](int rank) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
    int64_t round = 1;
    std::string message;
    try {
      for (; round <= 9; ++round) {
        const bool is_broken = rank == 1 && round != 1 && round != 4;
        replica.run_round(round, kSteps, [&](auto& theta) {
          wander(theta, rank);
          if (is_broken) theta[7] = 1e6F;
        });
      }
    } catch (const DivergenceError& error) {
      message = error.what();
      sites.meeting.lose("s1");
    } catch (const PeerError&) {
    }
    return std::pair(round, message);
  });
  CHECK(ends[1].first == 8);
  CHECK_THAT(ends[1].second, Catch::Contains("in 3 rounds in a row"));
}

// Of the syncs of rounds 2 and 3.
struct Seen {
  std::vector<outer_optimizer::Work> works;  // of the newcomer's deltas
  int64_t missing_of_other = 0;
  std::vector<double> weights;  // of the own deltas
};

// A newcomer's fragments have the steps since the round's begin. The others' also have those of the
// round before, from where they applied the fragment.
TEST_CASE("a newcomer's deltas lack the steps of the round before in its first round alone") {
  auto run = strategy_run(2, 3, 0, 0, kSteps);
  Sites sites(run, start_values(50));
  const auto ends = wan::run_ranks(2, [&](int rank) {
    auto& replica = *sites.replicas[static_cast<std::size_t>(rank)];
    Seen seen;
    const auto keep = [&](const std::vector<SyncRecord>& applied) {
      for (const auto& sync : applied) {
        seen.works.push_back(sync.contributions[1].work);
        seen.missing_of_other += sync.contributions[0].work.missing_steps;
        seen.weights.push_back(sync.averaging_weight);
      }
    };
    const auto step = [&](auto& theta) { wander(theta, rank); };
    if (rank == 1) {
      replica.attend(1, kSteps);
    } else {
      replica.run_round(1, kSteps, step);
    }
    replica.run_round(2, kSteps, step, keep);
    replica.run_round(3, kSteps, step, keep);
    return seen;
  });
  REQUIRE(ends[0].works.size() == 6);
  for (std::size_t sync = 0; sync < 6; ++sync) {
    const auto& newcomer = ends[0].works[sync];
    CHECK(newcomer.steps == (sync < 3 ? 4 * static_cast<int64_t>(sync + 1) : kSteps));
    CHECK(newcomer.missing_steps == kSteps - newcomer.steps);
    const auto done = static_cast<double>(newcomer.steps), all = static_cast<double>(kSteps);
    CHECK(ends[1].weights[sync] == Approx(done / (done + all)));
    CHECK(ends[0].weights[sync] == Approx(all / (done + all)));
  }
  CHECK(ends[0].missing_of_other == 0);
}

TEST_CASE("values that the codec cannot send are in the record of the sync") {
  auto run = strategy_run(1, 1, 0, 0, 1);
  run.sync.codec.kind = outer_optimizer::CodecKind::kFp16;
  run.sync.outliers = outer_optimizer::OutlierRule::kOff;
  Sites sites(run, std::vector<float>(9, 0));
  std::vector<int64_t> saturated;
  for (const float value : {1.0F, 1e5F}) {
    sites.replicas[0]->run_round(
        std::ssize(saturated) + 1, 1, [&](auto& theta) { theta[2] = theta[4] = value; },
        [&](const auto& applied) {
          for (const auto& sync : applied) saturated.push_back(sync.saturated);
        });
  }
  CHECK(saturated == std::vector<int64_t>{0, 2});
}

}  // namespace
}  // namespace farstep
