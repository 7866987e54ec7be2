// One site's process of a run: it makes all parts from a config, joins its peers, trains and
// leaves.
//
// It owns the parts; a Run has references to them for the training loop. Not thread-safe: belongs
// to the training thread.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "heterogeneity/plan/planner.h"
#include "trainer/data/batch_source.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/model/task.h"
#include "trainer/peers/site_peers.h"
#include "trainer/round/run.h"
#include "trainer/run/site_checkpoints.h"
#include "trainer/run/site_ground.h"
#include "trainer/run/site_handover.h"
#include "trainer/run/site_model.h"
#include "trainer/run/site_validation.h"
#include "trainer/settings/load_config.h"
#include "trainer/site/inner_training.h"
#include "trainer/site/site_trainer.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

class SiteRun {
 public:
  // Joins the run. If it resumes, continues from the newest sync of which all sites have
  // checkpoints. If the run goes on already, train() takes the other sites' state. Returns null if
  // a stop was requested before all sites had joined. `wait_seconds` and `took_part` are as in
  // SitePeers::join(). Throws ConfigError, DataError or PeerError.
  static std::unique_ptr<SiteRun> open(const LoadedSite& loaded, const ResumeWish& resume,
                                       const std::stop_token& stop,
                                       std::optional<double> wait_seconds = {},
                                       bool took_part = false);
  // Aborts all transfers on the links.
  ~SiteRun();
  SiteRun(const SiteRun&) = delete;
  SiteRun& operator=(const SiteRun&) = delete;

  // Trains until the run's last round is committed or `stop` is requested, and then as the site's
  // `stop` says. Returns the process's exit code: 0 if the run is complete, 130 if it was stopped.
  // In both cases a checkpoint of the last step is on disk, and also when it throws PeerError.
  int train(const std::stop_token& stop);

 private:
  SiteRun(std::shared_ptr<SiteGround> ground, std::shared_ptr<SitePeers> peers,
          std::unique_ptr<Task> task);
  heterogeneity::Planner make_planner() const;
  std::unique_ptr<Strategy> make_strategy();
  std::unique_ptr<InnerTraining> make_training();
  std::unique_ptr<BatchSource> make_source() const;
  std::vector<EmulatedSpeed> speeds() const;
  // Refuses to train unless all sites start from the same weights.
  void compare_start() const;
  // Lets the learning rate go on as the run's settings say, at all members alike. `saved`: of the
  // checkpoint; nullopt: there is none.
  void resume_rate(const std::optional<RateState>& saved);
  void record_start();
  void log_plan() const;
  // Takes the state of the sites that train already. Returns false if a stop was requested.
  bool join_round(const std::stop_token& stop);
  // Saves a checkpoint, and returns when it is on disk.
  void save_now();
  // Records how this site ends, and tells the coordinator. If this site hosts the coordinator,
  // waits for the other sites to end, within the run's deadlines.
  void leave(Outcome outcome, const std::string& message);

  // Shared with open(): if the constructor fails, the peers are still told why.
  const std::shared_ptr<SiteGround> ground_;
  const std::shared_ptr<SitePeers> peers_;
  const RunConfig& config_;  // as the peers agreed on it
  const std::optional<CheckpointEntry> resumed_;
  const std::unique_ptr<Task> task_;
  SiteModel model_;
  heterogeneity::Planner planner_;
  SiteCheckpoints checkpoints_;
  SiteHandover handover_;
  const std::unique_ptr<Strategy> strategy_;  // its worker waits for who reads its state
  const std::unique_ptr<InnerTraining> training_;
  SiteTrainer trainer_;
  SiteValidation validation_;
  Run run_;
  std::string rate_note_;  // what the resume has made of the learning rate
};

// Trains this site to the end of the run, and returns the process's exit code. A site that was
// silent for too long takes the state of those who went on, and joins them again. With kAuto, a
// site that has all rounds of the run ends at once; if that is in doubt (FinishedRun), when the
// others have not come. Throws as SiteRun does.
int train_site(const LoadedSite& loaded, ResumeWish resume, const std::stop_token& stop);

}  // namespace farstep
