// Fakes the sites of a run in one process: the real rounds, planner, strategy and exchange, over
// a meeting of threads and a transport in memory. Each site trains a plain vector. Each has its own
// clock, which only its steps advance.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outer_optimizer/exchange/direct_exchange.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_transport.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/round/fake_handover.h"
#include "tests/trainer/round/fake_training.h"
#include "tests/trainer/strategy/meeting.h"
#include "tests/wan/transport/run_ranks.h"
#include "trainer/data/loader.h"
#include "trainer/round/join_round.h"
#include "trainer/round/run_round.h"
#include "trainer/scatter/batch_scatter.h"
#include "trainer/scatter/scattered_batches.h"
#include "trainer/strategy/make_strategy.h"
#include "trainer/telemetry/event_log.h"
#include "wan/transport/link_meter.h"

namespace farstep {

class FakePeers : public Peers, public outer_optimizer::Exchanges {
 public:
  // Returns this site's transport among the members of a later view.
  using Renew = std::function<wan::Transport&(const View&)>;

  FakePeers(View view, Meeting& meeting, wan::Transport& transport, Renew renew = {})
      : view_(std::move(view)),
        renew_(std::move(renew)),
        meeting_(meeting),
        site_(static_cast<int>(view_.self)),
        seat_(meeting.seat(site_)),
        generation_(view_.generation),
        transport_(&transport),
        exchange_(std::in_place, transport) {}

  const View& view() const override { return view_; }
  bool adopt(int64_t generation, const std::vector<std::string>& members) override {
    if (generation <= view_.generation) return false;
    const auto self = std::ranges::find(members, view_.own_name()) - members.begin();
    // As the coordinator tells it, except that several changes in one sync become one.
    const auto is_gone = [&](const auto& site) { return std::ranges::count(members, site) == 0; };
    const auto lost = std::ranges::find_if(view_.members, is_gone);
    wan::ViewMessage message{generation, members, "", "", 0};
    if (lost != view_.members.end()) {
      message.lost = *lost;
      message.lost_generation = generation;
    }
    // The welcome of a newcomer names it already.
    if (members == view_.members) message.joined = view_.own_name();
    for (const auto& site : members) {
      if (std::ranges::count(view_.members, site) == 0) message.joined = site;
    }
    new_views_.push_back(message);
    view_ = {generation, members, static_cast<std::size_t>(self)};
    return true;
  }
  std::vector<wan::ViewMessage> take_new_views() override { return std::exchange(new_views_, {}); }
  std::vector<wan::DonateMessage> take_state_requests(int64_t round) override {
    return meeting_.take_state_requests(site_, round);
  }
  wan::Rendezvous& rendezvous() override { return *seat_; }
  outer_optimizer::Exchanges& exchanges() override { return *this; }
  outer_optimizer::Exchange& among(const View& view) override {
    if (view.generation == generation_) return *exchange_;
    auto& transport = renew_(view);
    const std::lock_guard lock(mutex_);
    generation_ = view.generation;
    closed_ = sum(closed_, transport_->uplink());
    transport_ = &transport;
    return exchange_.emplace(transport);
  }
  wan::Transport& connections(const View&) override {
    const std::lock_guard lock(mutex_);
    return *transport_;
  }
  LinkUse uplink() const override {
    const std::lock_guard lock(mutex_);
    return {.state = sum(closed_, transport_->uplink()), .bits_per_second = std::nullopt};
  }
  std::vector<LinkUse> links() const override { return {}; }
  void measure_links() override {}
  void set_activity(int64_t, int64_t, const std::string& text) override { activity = text; }
  void report(const wan::MetricsMessage& metrics) override { reports.push_back(metrics); }
  bool has_failed() const override { return meeting_.has_lost(); }
  void throw_if_failed() const override { meeting_.throw_if_lost(); }

  std::string activity;
  std::vector<wan::MetricsMessage> reports;

 private:
  View view_;
  std::vector<wan::ViewMessage> new_views_;
  const Renew renew_;
  Meeting& meeting_;
  const int site_;  // in the meeting
  const std::unique_ptr<wan::Rendezvous> seat_;
  int64_t generation_;  // of the exchange
  mutable std::mutex mutex_;
  wan::LinkState closed_;      // guarded by mutex_: of the transports before
  wan::Transport* transport_;  // guarded by mutex_
  std::optional<outer_optimizer::DirectExchange> exchange_;
};

// The state of a site that a checkpoint saves.
struct SavedRun {
  RunPosition position;
  int64_t steps = 0;
  double loss_sum = 0, round_seconds = 0;
  std::vector<double> step_seconds;
  heterogeneity::GradientNoise noise;
  std::vector<float> theta, global, momentum;
  Json planner, strategy;
  std::vector<std::vector<std::byte>> buffers;
};

class KeptCheckpoints : public Checkpoints {
 public:
  explicit KeptCheckpoints(FakeTraining& training) : training_(training) {}
  void begin(Run& run) override {
    auto& strategy = run.strategy;
    const auto copy = [](std::span<float> values) {
      return std::vector<float>(values.begin(), values.end());
    };
    saved = {.position = run.position,
             .steps = run.site.steps_done(),
             .loss_sum = run.site.loss_sum(),
             .round_seconds = run.site.timer().elapsed_seconds(),
             .step_seconds = run.site.timer().steps(),
             .noise = run.site.noise(),
             .theta = training_.values,
             .global = copy(strategy.theta_global()),
             .momentum = copy(strategy.outer_momentum()),
             .planner = run.planner.state(),
             .strategy = strategy.state(),
             .buffers = {}};
    for (const auto& buffer : strategy.own_buffers()) {
      saved.buffers.emplace_back(buffer.bytes.begin(), buffer.bytes.end());
    }
    rounds.push_back(run.position.rounds_done);
    if (saved.steps == 0) by_round[run.position.rounds_done] = saved;
  }
  void collect(Run&) override {}
  void finish(Run&) override {}
  void leave_after(int64_t) override {}
  bool load_global(Run& run, int64_t round) override {
    const auto found = by_round.find(round);
    if (found == by_round.end()) return false;
    std::ranges::copy(found->second.global, run.strategy.theta_global().begin());
    std::ranges::copy(found->second.momentum, run.strategy.outer_momentum().begin());
    return true;
  }

  SavedRun saved;
  std::map<int64_t, SavedRun> by_round;  // that were made between two rounds
  std::vector<int64_t> rounds;           // after which a checkpoint was made

 private:
  FakeTraining& training_;
};

class CountedValidation : public Validator {
 public:
  bool run_if_due(Run& run, int64_t sequences_before, const std::stop_token& stop) override {
    if (!is_due) return true;
    if (before_validation) before_validation(run.position.rounds_done);
    if (stop.stop_requested()) return false;
    if (evaluate) evaluate(run);
    sequences.push_back({sequences_before, run.position.windows.pool().next()});
    return true;
  }
  bool is_due = true;
  std::function<void(int64_t rounds_done)> before_validation;
  std::function<void(Run&)> evaluate;  // unless empty, called for a validation that is due
  std::vector<std::pair<int64_t, int64_t>> sequences;  // before and after each round
};

// One site, driven by one thread.
class FakeSite {
 public:
  FakeSite(const RunConfig& config, std::size_t site, std::vector<float> start, double step_seconds,
           Meeting& meeting, wan::Transport& transport, FakePeers::Renew renew,
           HandedStates& handed, const std::filesystem::path& folder)
      : folder_(folder / config.sites[site].name),
        recorder_(folder_, config.sites[site].name, clock_),
        peers(view_of(config, site), meeting, transport, std::move(renew)),
        training(std::move(start), static_cast<int>(site), step_seconds, clock_),
        checkpoints(training),
        handover(handed, meeting),
        planner(config.plan, sites_of(config.sites), peers.view()),
        strategy(make_strategy(config)),
        trainer(training, recorder_, clock_),
        run{.config = config,
            .parameters = std::ssize(training.values),
            .peers = peers,
            .planner = planner,
            .site = trainer,
            .strategy = *strategy,
            .checkpoints = checkpoints,
            .validator = validation,
            .handover = handover,
            .recorder = recorder_,
            .clock = clock_} {
    if (config.strategy.scatter) take_batches();
  }

  // Trains on batches of numbered examples from here on: from the site's own, or from the master.
  void take_batches() {
    const Sampler sampler(run.config.data.order, 1, examples.size());
    if (!run.config.reads_data(peers.view().own_name())) {
      training.source =
          std::make_unique<ScatteredBatches>(NumberedExamples::form(), run.config.master(), peers);
    } else if (run.config.strategy.scatter) {
      training.source = std::make_unique<BatchScatter>(examples, sampler, peers);
    } else {
      training.source = std::make_unique<Loader>(examples, sampler);
    }
  }

  // Returns the recorded events of one kind.
  template <typename Kind>
  std::vector<Kind> events() const {
    std::vector<Kind> found;
    for (const auto& record : read_event_log(folder_ / kEventFile).records) {
      if (const auto* event = std::get_if<Kind>(&record.event)) found.push_back(*event);
    }
    return found;
  }

  // Continues from a checkpoint, as a new process would.
  void restore(const SavedRun& saved) {
    strategy->restore(saved.strategy);
    run.position = saved.position;
    std::ranges::copy(saved.global, strategy->theta_global().begin());
    std::ranges::copy(saved.momentum, strategy->outer_momentum().begin());
    const auto buffers = strategy->own_buffers();
    REQUIRE(buffers.size() == saved.buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      std::ranges::copy(saved.buffers[i], buffers[i].bytes.begin());
    }
    training.values = saved.theta;
    planner.restore(saved.planner);
    trainer.resume(saved.steps, saved.loss_sum, saved.round_seconds, saved.step_seconds,
                   saved.noise);
  }

 private:
  std::unique_ptr<Strategy> make_strategy(const RunConfig& config) {
    return farstep::make_strategy(config.strategy.kind, settings_of(config), peers.view(),
                                  {training.values, {{"first", 0}, {"second", 3}}},
                                  {.rendezvous = peers.rendezvous(),
                                   .recorder = recorder_,
                                   .clock = clock_,
                                   .wait_for_readers = [this] { handover.wait_for_copies(); }});
  }

  FakeClock clock_;
  const std::filesystem::path folder_;
  Recorder recorder_;

 public:
  NumberedExamples examples;
  FakePeers peers;
  FakeTraining training;  // whose source uses both
  KeptCheckpoints checkpoints;
  CountedValidation validation;
  FakeHandover handover;
  heterogeneity::Planner planner;
  const std::unique_ptr<Strategy> strategy;
  SiteTrainer trainer;
  Run run;
};

// All sites of a run, with the times of their steps.
class FakeSites {
 public:
  FakeSites(const RunConfig& config, const std::vector<double>& step_seconds)
      : FakeSites(std::vector<RunConfig>(config.sites.size(), config), step_seconds) {}
  // Makes sites with a config each.
  FakeSites(std::vector<RunConfig> configs, const std::vector<double>& step_seconds)
      : configs_(std::move(configs)), meeting(static_cast<int>(configs_.size())) {
    std::vector<std::string> names;
    for (const auto& site : configs_.front().sites) names.push_back(site.name);
    for (std::size_t site = 0; site < names.size(); ++site) {
      sites.push_back(std::make_unique<FakeSite>(
          configs_[site], site, start_values(11), step_seconds[site], meeting,
          transport({.generation = 1, .members = names, .self = site}),
          [this](const View& view) -> wan::Transport& { return transport(view); }, handed,
          folder_.path()));
    }
  }
  // Makes this site one of a new process, which has lost everything, at the same places.
  void renew(std::size_t site) {
    const auto& view = sites[site]->peers.view();
    former_steps[site] = sites[site]->training.steps;
    sites[site] = std::make_unique<FakeSite>(
        configs_[site], site, std::vector<float>(11), sites[site]->training.step_seconds, meeting,
        transport(
            {.generation = -static_cast<int64_t>(site), .members = view.members, .self = site}),
        [this](const View& newer) -> wan::Transport& { return transport(newer); }, handed,
        folder_.path() / "renewed");
  }

  FakeSite& operator[](std::size_t site) { return *sites[site]; }

  // Ends all waits with the loss of this site, at the meeting and in transfers. Any thread's.
  void lose(const std::string& site, bool comes_back = false) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [generation, transports] : transports_) {
        for (auto& transport : transports) transport->abort(site, "site " + site + " is gone");
      }
    }
    meeting.lose(site, comes_back);
  }

  // Runs all sites until the end or the stop. Returns the results of their run_rounds().
  std::vector<bool> run(const std::stop_token& stop = {}) {
    const auto done = wan::run_ranks(static_cast<int>(sites.size()), [&](int site) {
      return static_cast<int>(run_rounds(sites[static_cast<std::size_t>(site)]->run, stop));
    });
    return {done.begin(), done.end()};
  }

 private:
  // Returns the transport of the view's own place, among its members.
  wan::Transport& transport(const View& view) {
    const std::lock_guard lock(mutex_);
    auto& transports = transports_[view.generation];
    if (transports.empty()) transports = connect_in_memory(view.members, 10);
    return *transports[view.self];
  }

  const std::vector<RunConfig> configs_;
  const TemporaryFolder folder_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<std::unique_ptr<wan::Transport>>> transports_;  // by generation

 public:
  Meeting meeting;
  HandedStates handed;
  std::map<std::size_t, std::vector<TrainedStep>> former_steps;  // by site that was renewed
  std::vector<std::unique_ptr<FakeSite>> sites;                  // last: end before what they use
};

}  // namespace farstep
