// A site lets the others go on only when its checkpoint is whole.
#include <mutex>

#include "tests/support/catch.h"
#include "tests/trainer/strategy/replica.h"
#include "trainer/base/error.h"

namespace farstep {
namespace {

// Notes what happens, in order.
class Journal {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(what);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// The other sites never come.
class EmptyMeeting : public wan::Rendezvous {
 public:
  explicit EmptyMeeting(Journal& journal) : journal_(journal) {}
  std::optional<wan::Go> arrive(const wan::SyncId&, const wan::Contribution&, const std::string&,
                                std::stop_token) override {
    journal_.add("arrives");
    return std::nullopt;
  }
  bool vote(const wan::SyncId&, const std::string&, std::stop_token) override {
    journal_.add("votes");
    return true;
  }
  bool is_renewed(int64_t, const std::string&, std::stop_token) override { return false; }

 private:
  Journal& journal_;
};

class NoExchange : public DeltaExchange {
 public:
  void average(const outer_optimizer::SyncPoint&, std::span<float>,
               const outer_optimizer::ResidualSpans&) override {
    throw InternalError("nobody is there");
  }
};

template <typename Sync>
struct LonelySite {
  LonelySite(const RunConfig& run, std::function<void()> wait_for_readers)
      : theta(start_values(6)),
        recorder(folder.path(), "s0", clock),
        meeting(journal),
        strategy(settings_of(run), view_of(run, 0), {theta, {{"first", 0}}},
                 {.rendezvous = meeting,
                  .recorder = recorder,
                  .clock = clock,
                  .wait_for_readers = std::move(wait_for_readers),
                  .finish_checkpoint = [this] { is_finished = true; }}) {}

  Synced end_round(int64_t round) {
    VectorTheta local(theta);
    const heterogeneity::RoundTiming done{.steps = 1, .batch = 1, .micro_batch = 1};
    const PlannedWork planned{.site = "s", .batch = 1, .local_steps = 1, .most_steps = 1};
    strategy.begin({.round = round,
                    .view = {.generation = 1, .members = {"s0", "s1"}, .self = 0},
                    .planned = {planned, planned},
                    .exchanges = &exchanges,
                    .theta = &local},
                   {}, {});
    strategy.after_step(1, done, {});
    return strategy.end(done, {});
  }

  const TemporaryFolder folder;
  RealClock clock;
  Journal journal;
  bool is_finished = false;
  std::vector<float> theta;
  Recorder recorder;
  EmptyMeeting meeting;
  NoExchange exchange;
  OneExchange exchanges{exchange};
  Sync strategy;
};

TEST_CASE("a site arrives after its checkpoint is whole and the owner has finished it") {
  Journal* journal = nullptr;
  LonelySite<LowCommunication> site(strategy_run(2, 1, 0, 0, 2), [&] { journal->add("whole"); });
  journal = &site.journal;
  CHECK(site.end_round(1).is_stopped);
  CHECK(site.journal.lines() == std::vector<std::string>{"whole", "arrives"});
  CHECK(site.is_finished);
}

TEST_CASE("an eager site arrives after its checkpoint is whole") {
  auto run = strategy_run(2, 1, 0, 0, 2);
  run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  run.outer.rounds = 3;
  Journal* journal = nullptr;
  LonelySite<EagerUpdates> site(run, [&] { journal->add("whole"); });
  journal = &site.journal;
  CHECK_FALSE(site.end_round(1).is_stopped);
  CHECK(site.journal.lines().empty());
  CHECK(site.end_round(2).is_stopped);
  CHECK(site.journal.lines() == std::vector<std::string>{"whole", "arrives"});
}

TEST_CASE("a site whose checkpoint fails does not arrive and says why") {
  LonelySite<LowCommunication> site(strategy_run(2, 1, 0, 0, 2),
                                    [] { throw DataError("No space left on device"); });
  CHECK_THROWS_WITH(site.end_round(1), Catch::Contains("No space left"));
  CHECK(site.journal.lines().empty());
}

}  // namespace
}  // namespace farstep
