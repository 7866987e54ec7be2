// The steps of a site that serves alone: it adds up the gradients of the others, and updates its
// copy of the model as they do. There is no forward or backward, and so no data.
#pragma once

#include <optional>
#include <span>

#include "trainer/base/clock.h"
#include "trainer/inner/inner_step.h"
#include "trainer/run/model_theta.h"
#include "trainer/site/inner_training.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

class ServedTraining : public InnerTraining {
 public:
  // All arguments must outlive this; `mirror` is of the model that `inner` updates.
  ServedTraining(InnerStep& inner, HostMirror& mirror, Recorder& recorder)
      : inner_(inner), theta_(mirror), recorder_(recorder) {}

  void begin(const StepDraws& draws) override;
  // Requires `gradients`. Returns nullopt: the step is none of this site's.
  std::optional<StepDone> step(const StepOrder& order, SiteReduction* gradients,
                               const std::stop_token& stop) override;
  bool is_step_under_way() const override { return false; }
  std::optional<StepDone> finish() override { return std::nullopt; }
  int64_t begin_anew() override { return inner_.begin_anew(); }
  double warm_up_factor() const override { return inner_.warm_up_factor(); }
  LocalTheta& theta() override { return theta_; }
  std::span<float> gradients() override { return inner_.host_gradients(); }

 private:
  InnerStep& inner_;
  ModelTheta theta_;
  Recorder& recorder_;
};

}  // namespace farstep
