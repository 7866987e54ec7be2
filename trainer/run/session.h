// One site's part in a run: everything that the training loop works with, built from a config.
//
// Building it joins the run: the coordinator is found (or started here), all sites are there, the
// network has been checked, the model is initialised or restored. Not thread-safe; belongs to the
// training thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "heterogeneity/plan/planner.h"
#include "outer_optimizer/exchange/exchange.h"
#include "trainer/base/clock.h"
#include "trainer/config/site_config.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_dataset.h"
#include "trainer/inner/cores.h"
#include "trainer/inner/device_balance.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/trainable_model.h"
#include "trainer/run/round_timer.h"
#include "trainer/run/site_network.h"
#include "trainer/strategy/strategy.h"
#include "trainer/telemetry/recorder.h"
#include "wan/transport/link_meter.h"

namespace farstep {

// How far a site has come.
struct RunPosition {
  int64_t rounds_done = 0;
  int64_t steps_done = 0;  // of the round that is under way
  double loss_sum = 0;     // of those steps
  DataPosition data;       // at the start of that round
};

class Session {
 public:
  // Joins the run; with `resume`, goes on from the newest sync that all sites have checkpoints of.
  // Nothing if a stop was asked for before all sites were there. Throws ConfigError, DataError or
  // PeerError.
  static std::unique_ptr<Session> open(const LoadedSite& loaded, bool resume,
                                       const std::stop_token& stop);
  // Ends what is under way on the network.
  ~Session();

  std::size_t site_id() const { return static_cast<std::size_t>(network_->welcome().site_id); }
  const RoundPlan& plan() const { return planner_->plan(); }
  const SitePlan& own_plan() const { return plan().sites[site_id()]; }

  // Saves what makes the run resumable from here, and records it.
  void save_checkpoint();
  // Counts a round that is over, and plans the next from what `newest`, the newest sync that was
  // applied in it, tells of what each site did; nothing if none was. Throws InternalError if a site
  // did something else than was planned.
  void advance_to_next_round(const std::optional<SyncRecord>& newest);
  // Between two rounds: changes how the sites sync, where the run is to choose that itself and what
  // the planner knows tells something better; and records why.
  void retune();
  // Tells the peers and the record how this site ends. Where the coordinator is hosted, waits for
  // the other sites to end as well, within the run's deadlines.
  void leave(EndOutcome outcome, const std::string& message);

  const RunConfig& run() const { return network_->run(); }
  int64_t generation() const { return network_->welcome().generation; }
  Clock& clock() { return clock_; }
  Member& member() { return network_->member(); }
  Recorder& recorder() { return recorder_; }
  const Transport& transport() const { return network_->transport(); }
  LinkState uplink() const { return network_->uplink(); }
  LinkMeters& links() { return *links_; }
  Loader& loader() { return *loader_; }
  const TokenDataset& validation_data() const { return validation_data_; }
  TrainableModel& model() { return *model_; }
  InnerStep& inner() { return *inner_; }
  DeviceBalance& balance() { return *balance_; }
  std::span<EmulatedSpeed> speeds() { return speeds_; }
  RoundTimer& timer() { return timer_; }
  Strategy& strategy() { return *strategy_; }
  LocalTheta& theta_local() { return *theta_local_; }

  RunPosition position;
  std::optional<StepEvent> step_under_way;  // of a GPU that the host did not wait for

 private:
  Session(const LoadedSite& loaded, bool resume);
  bool join(const LoadedSite& loaded, bool resume, const std::stop_token& stop);
  void build_model();
  void build_planner();
  void restore();
  void check_work(const SyncRecord& sync) const;
  void learn_from(const SyncRecord& sync);
  NamedBuffers own_buffers(bool with_local);
  std::filesystem::path checkpoint_root() const { return output_ / "checkpoints"; }
  void record_start();

  const SiteConfig site_;
  const std::vector<Cores> cores_;      // by device
  const std::filesystem::path output_;  // this site's own folder
  RealClock clock_;
  Recorder recorder_;
  const TokenDataset training_data_, validation_data_;
  std::vector<EmulatedSpeed> speeds_;  // by device
  RoundTimer timer_;
  std::unique_ptr<SiteNetwork> network_;
  std::unique_ptr<Planner> planner_;
  std::optional<RoundPlan> plan_before_;  // of the round before; nothing before that or a resume
  std::unique_ptr<DeviceBalance> balance_;
  std::unique_ptr<LinkMeters> links_;
  std::vector<double> shares_;  // of the reduction, by site, as the strategy was retuned to
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<TrainableModel> model_;
  std::unique_ptr<InnerStep> inner_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<LocalTheta> theta_local_;
  std::unique_ptr<Strategy> strategy_;  // last: its worker ends before what it uses
};

}  // namespace farstep
