// A narrow ResNet-18 learns Fashion-MNIST at two sites, by the rounds, the strategies and the inner
// steps that train language models.
#include <ATen/Parallel.h>

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/trainer/round/fake_sites.h"
#include "trainer/data/loader.h"
#include "trainer/model/convnet/image_task.h"
#include "trainer/model/evaluate.h"
#include "trainer/run/model_training.h"

namespace farstep {
namespace {

// Where the package dataset-fashion-mnist puts them.
const std::filesystem::path kFashionMnist = "/usr/share/datasets/fashion-mnist";

class NoCheckpoints : public Checkpoints {
 public:
  void begin(Run&) override {}
  void collect(Run&) override {}
  void finish(Run&) override {}
  void leave_after(int64_t) override {}
  bool load_global(Run&, int64_t) override { return false; }
};

class NoValidation : public Validator {
 public:
  bool run_if_due(Run&, int64_t, const std::stop_token&) override { return true; }
};

class NoHandover : public Handover {
 public:
  void begin(Run&, int64_t, std::span<const wan::Newcomer>) override { FAIL("no site joins"); }
  void wait_for_copies() override {}
  std::optional<double> expected_seconds(const Run&) const override { return std::nullopt; }
};

// One site that trains the task's model.
class ImageSite {
 public:
  ImageSite(const RunConfig& config, const Task& task, std::size_t site, Meeting& meeting,
            wan::Transport& transport, const std::filesystem::path& folder)
      : recorder_(folder, config.sites[site].name, clock_),
        model(fresh_model(task, config)),
        inner_(*model, config.inner),
        training_(inner_, model->parameters().host_values(),
                  std::make_unique<Loader>(task.training(),
                                           Sampler(config.data.order, 1, task.training().size())),
                  {EmulatedSpeed(std::nullopt)}, {std::nullopt}, clock_),
        peers_(view_of(config, site), meeting, transport),
        planner_(config.plan, sites_of(config.sites), peers_.view()),
        strategy(make_strategy(config.strategy.kind, settings_of(config), peers_.view(),
                               {model->parameters().host_values().pull(), {{"all", 0}}},
                               {peers_.rendezvous(), recorder_, clock_})),
        trainer_(training_, recorder_, clock_),
        run_{.config = config,
             .parameters = model->parameters().size(),
             .peers = peers_,
             .planner = planner_,
             .site = trainer_,
             .strategy = *strategy,
             .checkpoints = checkpoints_,
             .validator = validation_,
             .handover = handover_,
             .recorder = recorder_,
             .clock = clock_} {}

  bool train() {
    at::set_num_threads(1);
    return run_rounds(run_, {});
  }

 private:
  static std::unique_ptr<TrainableModel> fresh_model(const Task& task, const RunConfig& config) {
    auto model = task.make_model(at::kCPU, false);
    task.set_start_values(model->parameters(), static_cast<uint64_t>(config.seed));
    return model;
  }

  RealClock clock_;
  Recorder recorder_;

 public:
  const std::unique_ptr<TrainableModel> model;

 private:
  InnerStep inner_;
  ModelTraining training_;
  FakePeers peers_;
  NoCheckpoints checkpoints_;
  NoValidation validation_;
  NoHandover handover_;
  heterogeneity::Planner planner_;

 public:
  const std::unique_ptr<Strategy> strategy;

 private:
  SiteTrainer trainer_;
  Run run_;
};

RunConfig image_run() {
  auto run = strategy_run(2, 1, 0, 0, 25);
  run.outer.rounds = 5;
  run.outer.momentum = 0.5;  // 0.9 overshoots in so few rounds
  run.plan.base_batch = 16;
  run.model.family = ModelFamily::kImages;
  run.model.images.width = 4;
  run.data.images = {.crop_padding = 0, .flip = false};  // a few hundred images vary enough
  run.inner.rate.peak_learning_rate = 1e-2;
  run.inner.adamw.weight_decay = 0.01;
  return run;
}

// Trains at two sites, and checks that both end with one net that has learned.
void check_that_sites_learn(const RunConfig& run) {
  if (!std::filesystem::exists(kFashionMnist)) {
    return skip_test("Fashion-MNIST is not there (scripts/setup.sh --tests)");
  }
  const auto data = std::make_shared<const ImageData>(kFashionMnist);
  const ImageTask task(run, convnet_of_run(run, "run.json", *data), data);
  CHECK(task.training().size() == 60'000);
  const TemporaryFolder folder;
  Meeting meeting(2);
  const auto transports = connect_in_memory({"s0", "s1"}, 60);
  std::vector<std::unique_ptr<ImageSite>> sites;
  for (const std::size_t site : {0, 1}) {
    sites.push_back(std::make_unique<ImageSite>(run, task, site, meeting, *transports[site],
                                                folder / std::to_string(site)));
  }
  const auto done = wan::run_ranks(
      2, [&](int site) { return int{sites[static_cast<std::size_t>(site)]->train()}; });
  CHECK(done == std::vector<int>{1, 1});
  const auto theta = sites[0]->strategy->theta_global();
  CHECK(std::ranges::equal(theta, sites[1]->strategy->theta_global()));
  // The mean of both, which a real run validates.
  auto& mirror = sites[0]->model->parameters().host_values();
  std::ranges::copy(theta, mirror.pull().begin());
  mirror.push();
  const auto result = evaluate(*sites[0]->model, task.validation(), {.examples = 1000});
  CHECK(result.accuracy().value() > 0.5);  // 0.1 by chance
}

TEST_CASE("two sites learn to classify images by low communication") {
  check_that_sites_learn(image_run());
}

TEST_CASE("two sites learn to classify images by fragments that are synced behind training") {
  auto run = image_run();
  run.sync.fragments = 4;
  run.sync.delay_steps = 5;
  run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  check_that_sites_learn(run);
}

TEST_CASE("two sites learn to classify images by eager updates") {
  auto run = image_run();
  run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  check_that_sites_learn(run);
}

TEST_CASE("two sites learn to classify images by the mean gradient of every step") {
  auto run = image_run();
  run.strategy.kind = outer_optimizer::StrategyKind::kRingAllReduce;
  run.plan.equal_steps = true;
  check_that_sites_learn(run);
}

}  // namespace
}  // namespace farstep
