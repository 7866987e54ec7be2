// A site of a small run that takes a donor's state. The other sites are not there.
#pragma once

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "tests/trainer/round/fake_training.h"
#include "trainer/round/join_round.h"
#include "trainer/strategy/make_strategy.h"

namespace farstep {

// With whole deltas and plans alike; with fragments, residuals and plans that learn; with eager
// updates.
inline std::array<RunConfig, 3> donated_configs() {
  auto whole = strategy_run(3, 1, 0, 0, 12);
  auto in_fragments = strategy_run(3, 3, 2, 0.5, 12);
  in_fragments.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  in_fragments.plan.policy = heterogeneity::Policy::kHybrid;
  auto eager = whole;
  eager.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  return {whole, in_fragments, eager};
}

class DonatedRun {
 public:
  // `config` must outlive this.
  explicit DonatedRun(const RunConfig& config)
      : recorder_(scratch_folder() / "donated", "s1", clock_),
        training_(std::vector<float>(11, 0.5F), 1, 1, clock_),
        planner_(config.plan, sites_of(config.sites), peers_.view()),
        strategy_(make_strategy(config.strategy.kind, settings_of(config), peers_.view(),
                                {training_.values, {{"first", 0}, {"second", 3}}},
                                {.rendezvous = nobody_, .recorder = recorder_, .clock = clock_})),
        site_(training_, recorder_, clock_),
        run{.config = config,
            .parameters = std::ssize(training_.values),
            .peers = peers_,
            .planner = planner_,
            .site = site_,
            .strategy = *strategy_,
            .checkpoints = nothing_,
            .validator = nothing_,
            .handover = nothing_,
            .recorder = recorder_,
            .clock = clock_} {}

  // Returns what the site would hand over.
  std::string state() const {
    auto shared = shared_state(run);
    shared.momentum_hash = "00";
    return to_json(shared).dump();
  }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("no round begins"); }

  struct Nobody : wan::Rendezvous {
    std::optional<wan::Go> arrive(const wan::SyncId&, const wan::Contribution&, const std::string&,
                                  std::stop_token) override {
      refuse();
    }
    bool vote(const wan::SyncId&, const std::string&, std::stop_token) override { refuse(); }
    bool is_renewed(int64_t, const std::string&, std::stop_token) override { refuse(); }
  };
  struct OwnView : Peers {
    const View& view() const override { return own; }
    bool adopt(int64_t, const std::vector<std::string>&) override { refuse(); }
    std::vector<wan::ViewMessage> take_new_views() override { refuse(); }
    std::vector<wan::DonateMessage> take_state_requests(int64_t) override { refuse(); }
    wan::Rendezvous& rendezvous() override { refuse(); }
    outer_optimizer::Exchanges& exchanges() override { refuse(); }
    LinkUse uplink() const override { return {}; }
    std::vector<LinkUse> links() const override { return {}; }
    void measure_links() override {}
    void set_activity(int64_t, int64_t, const std::string&) override {}
    void report(const wan::MetricsMessage&) override {}
    bool has_failed() const override { return false; }
    void throw_if_failed() const override {}

    const View own{.generation = 1, .members = {"s0", "s1", "s2"}, .self = 1};
  };
  struct Nothing : Checkpoints, Validator, Handover {
    void begin(Run&) override { refuse(); }
    void collect(Run&) override { refuse(); }
    void finish(Run&) override { refuse(); }
    void leave_after(int64_t) override { refuse(); }
    bool load_global(Run&, int64_t) override { refuse(); }
    bool run_if_due(Run&, int64_t, const std::stop_token&) override { refuse(); }
    void begin(Run&, int64_t, std::span<const wan::Newcomer>) override { refuse(); }
    void wait_for_copies() override { refuse(); }
    std::optional<double> expected_seconds(const Run&) const override { refuse(); }
  };

  FakeClock clock_;
  Recorder recorder_;
  FakeTraining training_;
  Nobody nobody_;
  OwnView peers_;
  Nothing nothing_;
  heterogeneity::Planner planner_;
  const std::unique_ptr<Strategy> strategy_;
  SiteTrainer site_;

 public:
  Run run;
};

}  // namespace farstep
