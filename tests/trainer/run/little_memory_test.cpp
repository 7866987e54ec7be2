// A device whose memory is too small for the micro-batches of its plan, from the start or later.
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/inner/watched_model.h"
#include "tests/trainer/run/small_examples.h"
#include "trainer/base/memory/out_of_memory.h"
#include "trainer/data/loader.h"
#include "trainer/run/model_training.h"

namespace farstep {
namespace {

constexpr int64_t kBatch = 7;

// A site whose plan has this micro-batch.
struct Site {
  explicit Site(int64_t micro_batch)
      : model([this](const at::Tensor& examples) {
          passes.push_back(examples.size(0));
          with_room_for(room)(examples);
        }),
        inner(model, inner_config()),
        training(inner, model.parameters().host_values(),
                 std::make_unique<Loader>(examples, Sampler(DataOrder::kSequential, 0, 100)),
                 {EmulatedSpeed(std::nullopt)}, {std::nullopt}, clock),
        recorder(folder.path(), "site", clock),
        trainer(training, recorder, clock),
        work(small_work(kBatch, micro_batch)) {
    model.parameters().initialise(5);
    trainer.begin(work);
  }

  std::vector<int64_t> passes_of_step() {
    passes.clear();
    trainer.step(nullptr, {});
    return passes;
  }

  int64_t room = 100;
  std::vector<int64_t> passes;  // their sequences, the failed ones included
  RealClock clock;
  SmallExamples examples;
  TemporaryFolder folder;
  Watched model;
  InnerStep inner;
  ModelTraining training;
  Recorder recorder;
  SiteTrainer trainer;
  const SiteWork work;
};

// A sum over one site.
class Alone : public SiteReduction {
 public:
  void begin_step() override {}
  void ready(std::size_t, int64_t, int64_t) override {}
  bool finish(std::size_t) override { return true; }
  void abandon() override { is_abandoned = true; }
  bool is_abandoned = false;
};

using Passes = std::vector<int64_t>;

}  // namespace

TEST_CASE("a site without room for its micro-batches takes the same steps in smaller ones") {
  for (const int64_t room : {1, 2, 6}) {
    Site wanted(room), site(kBatch);
    site.room = room;
    for (int step = 0; step < 3; ++step) {
      wanted.trainer.step(nullptr, {});
      site.trainer.step(nullptr, {});
    }
    CHECK(site.trainer.loss_sum() == wanted.trainer.loss_sum());
    CHECK(site.trainer.timing().micro_batch == room);
    CHECK(at::equal(site.model.parameters().values(), wanted.model.parameters().values()));
  }
}

TEST_CASE("memory that shrinks in mid-run costs one search") {
  Site site(4);
  CHECK(site.passes_of_step() == Passes{4, 3});
  site.room = 2;
  CHECK(site.passes_of_step() == Passes{4, 2, 3, 2, 2, 2, 1});
  CHECK(site.passes_of_step() == Passes{2, 2, 2, 1});
  site.trainer.begin(site.work);  // as in the next round
  CHECK(site.passes_of_step() == Passes{2, 2, 2, 1});
  site.room = 1;
  CHECK(site.passes_of_step() == Passes{2, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(site.passes_of_step() == Passes(7, 1));
}

TEST_CASE("a site without room for one sequence ends") {
  Site site(4);
  site.passes_of_step();
  site.room = 0;
  CHECK_THROWS_WITH(site.passes_of_step(), Catch::Contains("not even one fits"));
}

TEST_CASE("a step that other sites take too does not begin again") {
  Site site(4);
  Alone sum;
  site.trainer.step(&sum, {});
  site.room = 2;
  CHECK_THROWS_AS(site.trainer.step(&sum, {}), NoRoomError);
  CHECK(sum.is_abandoned);
}

}  // namespace farstep
