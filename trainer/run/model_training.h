// Takes the inner steps of a real model on the site's devices.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/data/batch_source.h"
#include "trainer/inner/device_balance.h"
#include "trainer/inner/emulated_speed.h"
#include "trainer/inner/inner_step.h"
#include "trainer/run/model_theta.h"
#include "trainer/site/inner_training.h"

namespace farstep {

class ModelTraining : public InnerTraining {
 public:
  // `speeds` and `sequence_seconds` are by device; a time is nullopt if it is unknown. `inner`,
  // `mirror` (of the model that `inner` trains) and `clock` must outlive this.
  ModelTraining(InnerStep& inner, HostMirror& mirror, std::unique_ptr<BatchSource> source,
                std::vector<EmulatedSpeed> speeds,
                std::vector<std::optional<double>> sequence_seconds, Clock& clock);

  void begin(const StepDraws& draws) override;
  std::optional<StepDone> step(const StepOrder& order, SiteReduction* gradients,
                               const std::stop_token& stop) override;
  bool is_step_under_way() const override { return under_way_.has_value(); }
  std::optional<StepDone> finish() override;
  int64_t begin_anew() override { return inner_.begin_anew(); }
  double warm_up_factor() const override { return inner_.warm_up_factor(); }
  LocalTheta& theta() override { return theta_; }
  std::span<float> gradients() override { return inner_.host_gradients(); }

 private:
  bool is_emulated() const;
  std::optional<StepDone> train_on(const BatchView& batch, const StepOrder& order, StepEvent event,
                                   SiteReduction* gradients, const std::stop_token& stop);
  // Takes a step and waits for it.
  StepDone step_at_once(const BatchView& batch, const StepOrder& order, StepEvent event,
                        SiteReduction* gradients, const std::stop_token& stop);
  // Takes the step. `gradients`, unless null, sums its gradient with other sites'. Sets
  // `slept_seconds` to the time that the step slept meanwhile for emulated devices.
  StepResult run(const BatchView& batch, std::span<const int64_t> shares, const StepOrder& order,
                 SiteReduction* gradients, double& slept_seconds, const std::stop_token& stop);
  // Returns how long the step will last for its slowest emulated device.
  double expected_seconds(std::span<const int64_t> shares) const;
  // Waits until the step that began at `began` has lasted as long as its slowest emulated device
  // needs. Returns each device's time for its share.
  std::vector<double> emulate_speeds(double began, std::span<const int64_t> shares,
                                     std::span<const double> device_seconds);
  // Records the result of the step under way.
  StepDone done_late(const StepResult& result);

  InnerStep& inner_;
  ModelTheta theta_;
  const std::unique_ptr<BatchSource> source_;
  std::optional<Batch> unused_;        // of a step that was not taken
  std::vector<EmulatedSpeed> speeds_;  // by device
  DeviceBalance balance_;
  Clock& clock_;
  double own_seconds_ = 0;              // of the last step, as the real devices took it
  std::optional<StepEvent> under_way_;  // on a GPU that the host did not wait for
};

}  // namespace farstep
