// What part of a round a site trains, where the sync of a model of real size crosses real
// connections: a process a site, over the loopback interface or inside a running wan_lab
// (scripts/wan_lab run), with the real strategy, exchange, codec, transport and control plane.
// Only the inner steps are fake: each lasts its time and changes some of the weights.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "heterogeneity/plan/sync_plan.h"
#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/bench/lab_site.h"
#include "tests/support/one_exchange.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/transport/hosts.h"
#include "trainer/base/clock.h"
#include "trainer/settings/run_config.h"
#include "trainer/strategy/low_communication.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"
#include "wan/transport/gloo/gloo_transport.h"

using namespace farstep;

namespace {

constexpr double kDeadlineSeconds = 600;

struct Options : SiteOptions {
  int64_t values = 214'983'680;
  int64_t local_steps = 100;
  double step_seconds = 0.15;
  int64_t rounds = 3;
  double mbit = 100, rtt_ms = 100, wan_target = 0.01;
  bool blocking = false;
};

// What one site measured of a round.
struct Round {
  double seconds = 0, exposed_wan_seconds = 0, wan_seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("seconds", seconds, "of the round", kRequired);
    visit("exposed_wan_seconds", exposed_wan_seconds, "in which training waited", kRequired);
    visit("wan_seconds", wan_seconds, "of all syncs", kRequired);
  }
};

struct Measured {
  std::vector<Round> rounds = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rounds", rounds, "one after the other", kRequired);
  }
};

// Weights that some device holds.
class FakeTheta : public LocalTheta {
 public:
  explicit FakeTheta(std::size_t size) : values_(size, 1.0F) {}
  std::span<float> pull(const outer_optimizer::Range& range) override {
    return part(values_, range);
  }
  void start_pull(const outer_optimizer::Range& range) override {
    const auto values = pull(range);
    pulled_.assign(values.begin(), values.end());
  }
  std::span<float> finish_pull() override { return pulled_; }
  void push(const outer_optimizer::Range& range, std::span<const float> values) override {
    if (values.data() != part(values_, range).data()) {
      std::ranges::copy(values, part(values_, range).begin());
    }
  }
  std::span<const float> values() const { return values_; }
  void step(int rank) {
    for (std::size_t k = 0; k < values_.size(); k += 1024) {
      values_[k] += 1e-4F * static_cast<float>(1 + rank);
    }
  }

 private:
  std::vector<float> values_;
  std::vector<float> pulled_;
};

outer_optimizer::SyncConfig sync_of(const Options& options) {
  if (options.blocking) return {};
  const auto plan = heterogeneity::plan_sync({.parameters = options.values,
                                              .num_sites = options.sites,
                                              .uplink_bits_per_second = 1e6 * options.mbit,
                                              .rtt_seconds = 1e-3 * options.rtt_ms,
                                              .step_seconds = options.step_seconds,
                                              .base_steps = options.local_steps},
                                             options.wan_target);
  fmt::print("{}\n", plan.reason);
  std::fflush(stdout);  // before the sites are forked
  return changed_to({}, plan);
}

RunConfig run_of(const Options& options, const outer_optimizer::SyncConfig& sync) {
  RunConfig run;
  run.name = "overlap";
  for (const auto& name : options.site_names()) run.sites.emplace_back().name = name;
  run.sync = sync;
  run.plan.base_steps = options.local_steps;
  run.outer.rounds = options.rounds;
  return run;
}

Round run_round(const Options& options, const RoundStart& start, LowCommunication& strategy,
                FakeTheta& theta, Clock& clock) {
  Round round;
  const double began = clock.now_seconds();
  heterogeneity::RoundTiming so_far{.steps = 0, .batch = 1, .micro_batch = 1};
  const auto count = [&](const Synced& synced) {
    for (const auto& record : synced.applied) {
      round.exposed_wan_seconds += record.exposed_wan_seconds + record.exposed_wait_seconds;
      round.wan_seconds += record.wan_seconds;
    }
  };
  count(strategy.begin(start, so_far, {}));
  while (so_far.steps < options.local_steps) {
    const double until = clock.now_seconds() + options.step_seconds;
    theta.step(static_cast<int>(start.view.self));
    clock.sleep_until(until);
    ++so_far.steps;
    count(strategy.after_step(1, so_far, {}));
  }
  count(strategy.end(so_far, {}));
  round.seconds = clock.now_seconds() - began;
  return round;
}

std::string run_site(const Options& options, const RunConfig& run,
                     const std::optional<wan::LabFile>& lab, int rank, wan::Store& store) {
  const auto address = enter_site(lab, rank);
  const TemporaryFolder folder;
  RealClock clock;
  std::unique_ptr<wan::Coordinator> coordinator;
  if (rank == 0) {
    coordinator = std::make_unique<wan::Coordinator>(fmt::format("tcp://{}:*", address),
                                                     served_run(run), run.deadlines, clock);
    store.put("coordinator", coordinator->endpoint());
  }
  const auto& name = run.sites[static_cast<std::size_t>(rank)].name;
  wan::Member member(store.get("coordinator"), name, run.deadlines, clock);
  const auto welcome = member.join({});
  wan::MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = welcome->sites;
  mesh.address = address;
  mesh.lanes = options.lanes();
  mesh.generation = static_cast<uint64_t>(welcome->generation);
  wan::GlooTransport transport(mesh, {}, run.deadlines.transfer_stall_seconds, member);
  outer_optimizer::DirectExchange exchange(transport);
  OneExchange exchanges(exchange);
  Recorder recorder(folder.path(), name, clock);
  FakeTheta theta(static_cast<std::size_t>(options.values));
  const View view{.generation = welcome->generation,
                  .members = welcome->sites,
                  .self = static_cast<std::size_t>(rank)};
  LowCommunication strategy(
      {.outer = run.outer, .sync = run.sync, .base_steps = options.local_steps}, view,
      {theta.values(), {{"all", 0}}}, {member, recorder, clock});
  RoundStart start{.view = view,
                   .planned = {},
                   .tokens_per_step = 1024,
                   .exchanges = &exchanges,
                   .theta = &theta};
  for (const auto& site : view.members) {
    start.planned.push_back({.site = site,
                             .batch = 1,
                             .local_steps = options.local_steps,
                             .most_steps = options.local_steps});
  }
  Measured measured;
  for (start.round = 1; start.round <= options.rounds; ++start.round) {
    measured.rounds.push_back(run_round(options, start, strategy, theta, clock));
  }
  member.leave(Outcome::kDone, "");
  if (coordinator) coordinator->wait_until_over(run.deadlines.join_seconds);
  return to_json(measured).dump();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.sites = 2;
  CLI::App app("Tells what part of a round sites train while a model of real size is synced");
  options.add_to(app, 1);
  app.add_option("--values", options.values, "of the model")->check(CLI::PositiveNumber);
  app.add_option("--local-steps", options.local_steps)->check(CLI::PositiveNumber);
  app.add_option("--step-seconds", options.step_seconds)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "the first warms up")->check(CLI::Range(2, 1000));
  app.add_option("--mbit", options.mbit, "a site's uplink, for the plan of the sync");
  app.add_option("--rtt-ms", options.rtt_ms, "between sites, for the plan of the sync");
  app.add_option("--wan-target", options.wan_target, "share of a round, for the plan of the sync");
  app.add_flag("--blocking", options.blocking, "no plan: fp32 in one piece while training waits");
  CLI11_PARSE(app, argc, argv);
  const auto lab = lab_at(options.lab);
  const auto run = run_of(options, sync_of(options));
  const auto reports = wan::run_hosts(
      options.sites,
      [&](int rank, wan::Store& store) { return run_site(options, run, lab, rank, store); },
      kDeadlineSeconds);
  const double trained_seconds = static_cast<double>(options.local_steps) * options.step_seconds;
  const auto sites = read_reports<Measured>(reports);
  if (!sites) return 1;
  for (std::size_t rank = 0; rank < sites->size(); ++rank) {
    const auto& rounds = (*sites)[rank].rounds;
    for (std::size_t k = 1; k < rounds.size(); ++k) {
      const auto& round = rounds[k];
      fmt::print(
          "site {}, round {}: {:.2f} s, {:.2f} s of syncs, {:.2f} s of them exposed: trains "
          "{:.1f} %\n",
          rank, k + 1, round.seconds, round.wan_seconds, round.exposed_wan_seconds,
          100 * trained_seconds / round.seconds);
    }
  }
}
