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

#include "heterogeneity/plan/plan.h"
#include "outer_optimizer/codec/codec.h"
#include "outer_optimizer/exchange/direct_exchange.h"
#include "trainer/base/clock.h"
#include "trainer/config/site_config.h"
#include "trainer/data/loader.h"
#include "trainer/data/token_dataset.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/llama.h"
#include "trainer/strategy/strategy.h"
#include "trainer/telemetry/recorder.h"
#include "wan/membership/coordinator.h"
#include "wan/membership/member.h"
#include "wan/transport/gloo_transport.h"

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
  // Joins the run; with `resume`, goes on from the newest round that all sites have checkpoints of.
  // Nothing if a stop was asked for before all sites were there. Throws ConfigError, DataError or
  // PeerError.
  static std::unique_ptr<Session> open(const LoadedSite& loaded, bool resume,
                                       const std::stop_token& stop);
  ~Session();

  std::size_t site_id() const { return static_cast<std::size_t>(welcome_.site_id); }
  const SitePlan& own_plan() const { return plan_[site_id()]; }

  // Saves what makes the run resumable from here, and records it.
  void save_checkpoint();
  // Counts a committed round.
  void advance_to_next_round();
  // Tells the peers and the record how this site ends. Where the coordinator is hosted, waits for
  // the other sites to end as well, within the run's deadlines.
  void leave(EndOutcome outcome, const std::string& message);

  const RunConfig& run() const { return run_; }
  const RoundPlan& plan() const { return plan_; }
  Clock& clock() { return clock_; }
  Member& member() { return *member_; }
  Recorder& recorder() { return recorder_; }
  const GlooTransport& transport() const { return *transport_; }
  Loader& loader() { return *loader_; }
  const TokenDataset& validation_data() const { return validation_data_; }
  Llama& model() { return *model_; }
  InnerStep& inner() { return *inner_; }
  EmulatedSpeed& speed() { return speed_; }
  Strategy& strategy() { return *strategy_; }

  RunPosition position;

 private:
  Session(const LoadedSite& loaded, bool resume);
  bool join(const LoadedSite& loaded, bool resume, const std::stop_token& stop);
  void connect();
  void build_model();
  void restore();
  NamedBuffers own_buffers(bool mid_round);
  std::filesystem::path checkpoint_root() const { return output_ / "checkpoints"; }
  void record_start();

  const SiteConfig site_;
  const std::filesystem::path output_;  // this site's own folder
  RealClock clock_;
  Recorder recorder_;
  const TokenDataset training_data_, validation_data_;
  EmulatedSpeed speed_;
  std::unique_ptr<Coordinator> coordinator_;  // where it is hosted
  std::unique_ptr<Member> member_;
  Welcome welcome_;
  RunConfig run_;
  RoundPlan plan_;
  std::unique_ptr<GlooTransport> transport_;
  const Fp32Codec codec_;
  std::unique_ptr<DirectExchange> exchange_;
  std::unique_ptr<Llama> model_;
  std::unique_ptr<InnerStep> inner_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<Strategy> strategy_;
};

}  // namespace farstep
