// The composition root: the only place that builds the parts of a run and knows all of them. The
// order of the members is the order of building. What comes later may refer to what comes earlier.
#include "trainer/run/site_run.h"

#include <spdlog/spdlog.h>

#include <string_view>

#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/base/system/log.h"
#include "trainer/config/setting_list.h"
#include "trainer/data/loader.h"
#include "trainer/inner/make_optimizer.h"
#include "trainer/launch/finished_run.h"
#include "trainer/launch/interrupt.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/model/device.h"
#include "trainer/model/language/model_shape.h"
#include "trainer/peers/agreed_compute.h"
#include "trainer/peers/agreed_start.h"
#include "trainer/peers/data_facts.h"
#include "trainer/peers/known_sites.h"
#include "trainer/round/round_plan.h"
#include "trainer/round/round_stop.h"
#include "trainer/round/run_round.h"
#include "trainer/run/model_training.h"
#include "trainer/run/served_training.h"
#include "trainer/run/site_checks.h"
#include "trainer/scatter/batch_scatter.h"
#include "trainer/scatter/scattered_batches.h"
#include "trainer/strategy/make_strategy.h"

namespace farstep {

namespace {

// Records and logs the environment of this process.
void write_configs(const SiteGround& ground, const RunConfig& run) {
  write_file_durably(ground.output / "run.json", to_json(run).dump(2) + "\n");
  write_file_durably(ground.output / "site.json", to_json(ground.site).dump(2) + "\n");
  spdlog::info("instructions: {}", cpu_instructions_text());
  spdlog::info("every setting is in {}, run.json and site.json", ground.output.string());
  if (is_slow_compute(run.inner.compute, ground.site)) spdlog::warn(kSlowComputeText);
}

// Makes the checks that need the run. With strategy.scatter the master alone has the data, and
// tells the others before they make theirs.
void require_run(CheckedSite& site, SitePeers& peers) {
  const auto& run = peers.run();
  const bool is_told = run.strategy.scatter && !run.reads_data(site.loaded.site.name);
  if (is_told) site.data.learn(told_data_facts(run.master(), peers.store()));
  require_run_fits(site, run, std::string(kRunSource));
  if (!run.strategy.scatter || is_told) return;
  tell_data_facts(family_of(run).data_facts(site.in_run()), peers.store());
}

// Logs if `save` fails, so that the error before it is the one that ends the run.
template <typename Save>
void log_failure(std::string_view text, Save&& save) {
  try {
    save();
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", text, error.what());
  }
}

}  // namespace

std::unique_ptr<SiteRun> SiteRun::open(const LoadedSite& loaded, const ResumeWish& resume,
                                       const std::stop_token& stop,
                                       std::optional<double> wait_seconds, bool took_part) {
  in_file(loaded.file, [&] { load_gpu_library(loaded.site.devices); });
  CheckedSite checked(loaded);
  require_site(checked);
  const auto ground = std::make_shared<SiteGround>(loaded, resume);
  const std::shared_ptr<SitePeers> peers =
      SitePeers::join(loaded, ground->join_request(loaded, checked.digest()), ground->clock, stop,
                      {.journal = ground->site.coordinator.journal,
                       .term = ground->output / "term.json",
                       .records = ground->output / kEventFile,
                       .copies = ground->output / kCopiesFolder},
                      wait_seconds, took_part);
  if (!peers) return nullptr;
  return peers->telling_failure([&] {
    require_run(checked, *peers);
    write_configs(*ground, peers->run());
    peers->open_exchanges();
    auto task = family_of(peers->run()).make_task(checked.in_run());
    return std::unique_ptr<SiteRun>(new SiteRun(ground, peers, std::move(task)));
  });
}

// The order is that of the members, each of which uses the ones before it.
SiteRun::SiteRun(std::shared_ptr<SiteGround> ground, std::shared_ptr<SitePeers> peers,
                 std::unique_ptr<Task> task)
    : ground_(std::move(ground)),
      peers_(std::move(peers)),
      config_(peers_->run()),
      resumed_(peers_->is_newcomer() ? ground_->newest_checkpoint()
                                     : ground_->checkpoint_after(peers_->welcome().start_syncs)),
      task_(std::move(task)),
      model_(make_site_model(*task_, *ground_, config_, resumed_)),
      planner_(make_planner()),
      checkpoints_(config_, *ground_, *task_, model_),
      handover_(*peers_, ground_->site.network),
      strategy_(make_strategy()),
      training_(make_training()),
      trainer_(*training_, ground_->recorder, ground_->clock),
      validation_(*task_, *model_.model),
      run_{.config = config_,
           .parameters = model_.model->parameters().size(),
           .peers = *peers_,
           .planner = planner_,
           .site = trainer_,
           .strategy = *strategy_,
           .checkpoints = checkpoints_,
           .validator = validation_,
           .handover = handover_,
           .recorder = ground_->recorder,
           .clock = ground_->clock} {
  // Before restore(), which removes newer checkpoints.
  if (!peers_->is_newcomer()) {
    require_same_round(ground_->resume.from_round, peers_->view(), peers_->store());
  }
  std::optional<RateState> saved_rate;
  if (resumed_) saved_rate = checkpoints_.restore(run_, *resumed_);
  if (!peers_->is_newcomer()) {
    compare_start();
    resume_rate(saved_rate);
    // After restore(), since the record says at which step the run goes on.
    record_start();
    log_plan();
    // The first round's sync is chosen from the profiles; a resumed run has chosen already.
    if (!resumed_) retune(run_);
  }
  // Last: threads that start earlier must not inherit the first device's cores.
  stay_on_cores(ground_->cores.front());
}

SiteRun::~SiteRun() {
  // Both read members that are destroyed before them.
  checkpoints_.end();
  handover_.end();
  peers_->abort_links();
}

heterogeneity::Planner SiteRun::make_planner() const {
  const heterogeneity::ProfiledModel model{.parameters = model_.model->parameters().size(),
                                           .sequence_length = config_.targets_per_example(),
                                           .compute = std::string(name_of(config_.inner.compute))};
  return in_file(std::string(kRunSource), [&] {
    return heterogeneity::Planner(config_.plan, known_sites(config_, peers_->welcome(), model),
                                  peers_->view());
  });
}

std::unique_ptr<Strategy> SiteRun::make_strategy() {
  auto& parameters = model_.model->parameters();
  StartValues start{.theta = parameters.host_values().pull(), .tensors = {}};
  for (const auto& spec : parameters.layout()) start.tensors.push_back({spec.name, spec.offset});
  auto settings = strategy_settings(config_);
  settings.step_bound = step_bound(config_.inner, parameters.layout());
  return farstep::make_strategy(config_.strategy.kind, settings, peers_->view(), std::move(start),
                                {.rendezvous = peers_->rendezvous(),
                                 .recorder = ground_->recorder,
                                 .clock = ground_->clock,
                                 .wait_for_readers =
                                     [this] {
                                       checkpoints_.wait_until_whole();
                                       handover_.wait_for_copies();
                                     },
                                 .finish_checkpoint = [this] { checkpoints_.finish(run_); }});
}

std::unique_ptr<InnerTraining> SiteRun::make_training() {
  auto& theta = model_.model->parameters().host_values();
  if (!config_.trains(ground_->site.name)) {
    return std::make_unique<ServedTraining>(*model_.inner, theta, ground_->recorder);
  }
  const auto& view = peers_->view();
  return std::make_unique<ModelTraining>(
      *model_.inner, theta, make_source(), speeds(),
      known_sequence_seconds(planner_.sites(view)[view.self].profile, ground_->site.devices.size()),
      ground_->clock);
}

std::unique_ptr<BatchSource> SiteRun::make_source() const {
  auto& exchanges = peers_->exchanges();
  if (!config_.reads_data(ground_->site.name)) {
    return std::make_unique<ScatteredBatches>(task_->example_form(), config_.master(), exchanges);
  }
  const auto& examples = task_->training();
  const Sampler sampler(config_.data.order, static_cast<uint64_t>(config_.seed),
                        examples.sources());
  if (!config_.strategy.scatter) return std::make_unique<Loader>(examples, sampler);
  return std::make_unique<BatchScatter>(examples, sampler, exchanges);
}

std::vector<EmulatedSpeed> SiteRun::speeds() const {
  std::vector<EmulatedSpeed> speeds;
  for (const auto& device : ground_->site.devices) speeds.emplace_back(device.emulate);
  return speeds;
}

void SiteRun::compare_start() const {
  const auto remedy =
      resumed_ ? fmt::format("copy the folder {} of one site to the others, and resume again",
                             ground_->checkpoint_root().string())
      : !config_.model.from.empty()
          ? fmt::format("copy the folder of model.from, here {}, from one site to the others",
                        model_source(ground_->site, config_).string())
          : "fresh weights depend on `seed` and on the build: use the same one at all sites";
  require_same_start(checksum_text(strategy_->committed_checksum()), remedy, peers_->view(),
                     peers_->store());
}

void SiteRun::resume_rate(const std::optional<RateState>& saved) {
  const auto& rate = config_.inner.rate;
  const auto own = saved ? *saved : run_.rate();
  const auto agreed = agreed_rate(own, peers_->view(), peers_->store());
  run_.cycle = resumed_cycle(rate, agreed, config_.outer.rounds);
  rate_note_ = resumed_rate_text(rate, agreed, run_.cycle, config_.outer.rounds);
  if (!rate_note_.empty()) spdlog::info("{}", rate_note_);
  const auto jump = rate_jump_text(rate, own, run_.cycle);
  if (jump.empty()) return;
  spdlog::warn("{}", jump);
  rate_note_ += (rate_note_.empty() ? "" : "; ") + jump;
}

void SiteRun::record_start() {
  const auto& view = peers_->view();
  // The run file alone: it has no secrets, and a site's own config may have some of its machine.
  auto settings = list_settings(config_);
  ground_->recorder.record(RunEvent{.version = FARSTEP_VERSION,
                                    .run = config_.name,
                                    .site_id = static_cast<int64_t>(view.self),
                                    .sites = view.members,
                                    .devices = ground_->device_texts(),
                                    .parameters = run_.parameters,
                                    .sequence_length = config_.targets_per_example(),
                                    .rounds = config_.outer.rounds,
                                    .generation = view.generation,
                                    .unit = std::string(config_.target_name()),
                                    .start_round = run_.position.rounds_done,
                                    .start_step = trainer_.steps_done(),
                                    .start_fragments = strategy_->syncs_of_round(),
                                    .trains = config_.trains(ground_->site.name),
                                    .reads_data = config_.reads_data(ground_->site.name),
                                    .clock_offset_seconds = peers_->clock_offset_seconds(),
                                    .rate_note = rate_note_,
                                    .settings = std::move(settings.chosen),
                                    .default_settings = std::move(settings.defaults)});
}

void SiteRun::log_plan() const {
  const auto& view = peers_->view();
  const auto& plan = run_.own_plan();
  spdlog::info("run '{}' as site {} of {}: {} parameters, {} steps of {} examples a round: {}",
               config_.name, view.self + 1, view.size(), run_.parameters, plan.local_steps,
               plan.batch, plan.reason);
  const outer_optimizer::FragmentSchedule schedule(
      plan.local_steps, config_.sync.fragments, config_.sync.delay_steps, config_.plan.base_steps);
  if (schedule.delay_steps() == config_.sync.delay_steps) return;
  spdlog::info("sync.delay_steps: {} of plan.base_steps = {} are {} of this site's {} steps",
               config_.sync.delay_steps, config_.plan.base_steps, schedule.delay_steps(),
               plan.local_steps);
}

bool SiteRun::join_round(const std::stop_token& stop) {
  const auto record = [this] { record_start(); };
  if (!handover_.join(run_, record, stop)) return false;
  if (run_.is_done()) return true;
  const int64_t warm_up_steps = resumed_ ? 0 : model_.inner->warm_up();
  if (warm_up_steps > 0) {
    spdlog::info("AdamW begins with fresh moments: its learning rate rises for {} steps",
                 warm_up_steps);
  }
  log_plan();
  return true;
}

int SiteRun::train(const std::stop_token& stop) {
  // A newcomer without the run's state has no other checkpoint than the one that it came with.
  bool has_state = !peers_->is_newcomer();
  try {
    if (!has_state && !join_round(stop)) {
      leave(Outcome::kInterrupted, "");
      return kExitInterrupted;
    }
    has_state = true;
    const auto& deadlines = config_.deadlines;
    const HandInTime time(stop, ground_->site.stop.hand_in_seconds, deadlines.heartbeat_seconds,
                          [this] { return peers_->is_paused(); });
    if (run_rounds(run_, time.stop())) {
      // The last checkpoint must be whole before the others are told that this site is done.
      checkpoints_.finish(run_);
      // A site that came back in the last round has the run's result from this one alone.
      handover_.finish(stop);
      leave(Outcome::kDone, "");
      return 0;
    }
    save_now();
    leave(Outcome::kInterrupted, "");
    return kExitInterrupted;
  } catch (const StaleStateError& error) {
    leave(Outcome::kPeerLost, error.what());
    throw;
  } catch (const PeerError& error) {
    // A lost peer leaves this site's state whole, even in the middle of a round.
    if (has_state) log_failure("the state at the loss is not saved", [&] { save_now(); });
    // Sites that are interrupted at once leave one after the other; that is no loss of a peer.
    const bool interrupted = stop.stop_requested();
    leave(interrupted ? Outcome::kInterrupted : Outcome::kPeerLost, error.what());
    if (interrupted) return kExitInterrupted;
    throw;
  } catch (const std::exception& error) {
    // The state may be the cause of the failure, so it is not saved.
    log_failure("the checkpoint under way is lost", [&] { checkpoints_.finish(run_); });
    leave(Outcome::kFailed, error.what());
    throw;
  }
}

void SiteRun::save_now() {
  trainer_.finish();
  checkpoints_.begin(run_);
  checkpoints_.finish(run_);
}

void SiteRun::leave(Outcome outcome, const std::string& message) {
  ground_->recorder.record(EndEvent{.outcome = outcome, .message = message});
  // The other sites may still be evaluating, or saving their state.
  const auto& deadlines = config_.deadlines;
  peers_->leave(outcome, message,
                outcome == Outcome::kDone ? deadlines.join_seconds : deadlines.leave_seconds);
}

namespace {

// Returns the run if this site resumes it if it can, and has all of it.
std::optional<FinishedRun> finished_before(const LoadedSite& loaded, wan::Resume resume) {
  if (resume != wan::Resume::kAuto) return std::nullopt;
  std::optional<RunConfig> run;
  if (loaded.run) run = run_config_from_json(*loaded.run, loaded.run_file);
  auto finished = finished_run(loaded.site, run);
  if (!finished) return std::nullopt;
  log_to_file(loaded.site.folder() / kLogFile);
  if (finished->doubt.empty()) {
    spdlog::info(
        "{}; nothing to do. More outer.rounds let it go on; --resume without auto meets "
        "the other sites, as one that is behind needs it",
        finished->text());
  } else {
    spdlog::info("{}; this site looks for the others, as {}", finished->text(), finished->doubt);
  }
  return finished;
}

}  // namespace

// All parts of the run are made anew, as in a site that is started again. A coordinator that it
// hosts ends with them, and the run with it if there is no stand-by.
int train_site(const LoadedSite& loaded, ResumeWish resume, const std::stop_token& stop) {
  auto finished = finished_before(loaded, resume.how);
  if (finished && finished->doubt.empty()) return 0;
  const auto wait_seconds = finished ? std::optional(finished->join_seconds) : std::nullopt;
  const auto cores = allowed_cores();
  bool took_part = false;
  while (true) {
    try {
      const auto run = SiteRun::open(loaded, resume, stop, wait_seconds, took_part);
      return run ? run->train(stop) : kExitInterrupted;
    } catch (const NotJoinedError& error) {
      if (!finished) throw;
      spdlog::info("{}; nothing to do: {}", finished->text(), error.what());
      return 0;
    } catch (const LeftBehindError& error) {
      const bool is_only = loaded.site.coordinators().size() == 1;
      if (loaded.site.hosted_coordinator() && is_only) throw;
      spdlog::warn("{}; this site joins again", error.what());
      finished.reset();  // the run goes on
    }
    resume = {.how = wan::Resume::kAuto};
    took_part = true;
    stay_on_cores(cores);  // of its threads, as before the run pinned them
  }
}

}  // namespace farstep
