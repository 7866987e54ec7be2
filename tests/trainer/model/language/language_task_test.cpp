#include "trainer/model/language/language_task.h"

#include <numeric>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/model/batch_tensors.h"
#include "trainer/model/evaluate.h"
#include "trainer/model/shape/hf_config.h"

namespace farstep {

namespace {

constexpr int64_t kLength = 8;

void write_tokens(const TemporaryFolder& folder, std::string_view split, int64_t count) {
  std::mt19937 generator(1);
  std::vector<int32_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) {
    token = static_cast<int32_t>(generator() % static_cast<uint32_t>(kSmallConfig.vocabulary));
  }
  SplitWriter writer(folder.path(), split, kSmallConfig.vocabulary, /*eos=*/2, 307);
  writer.append(tokens, 1, count);
  writer.finish();
}

// A run that trains a model of kSmallConfig.
RunConfig small_run() {
  RunConfig run;
  run.model.vocabulary = kSmallConfig.vocabulary;
  run.model.hidden = kSmallConfig.hidden;
  run.model.intermediate = kSmallConfig.intermediate;
  run.model.layers = kSmallConfig.layers;
  run.model.heads = kSmallConfig.heads;
  run.model.kv_heads = kSmallConfig.kv_heads;
  run.model.rope_theta = kSmallConfig.rope_theta;
  run.model.norm_epsilon = kSmallConfig.norm_epsilon;
  run.model.tied_embeddings = kSmallConfig.tied_embeddings;
  run.data.sequence_length = kLength;
  run.inner.compute = ComputeType::kFP32;
  return run;
}

// 100 training windows and 50 validation windows.
class SmallTask {
 public:
  explicit SmallTask(const RunConfig& run = small_run(), const SiteConfig& site = {})
      : task_(site, run, "run.json", write()) {}
  const LanguageTask& operator*() const { return task_; }
  const LanguageTask* operator->() const { return &task_; }
  TokenData data() const { return TokenData(folder_.path()); }

 private:
  std::unique_ptr<TokenData> write() const {
    write_tokens(folder_, kTrainSplit, 100 * kLength + 1);
    write_tokens(folder_, kValidationSplit, 50 * kLength + 3);
    return std::make_unique<TokenData>(folder_.path());
  }

  TemporaryFolder folder_;
  LanguageTask task_;
};

// A model of the task with fresh values.
std::unique_ptr<TrainableModel> fresh_model(const Task& task) {
  auto model = task.make_model(at::kCPU, false);
  task.set_start_values(model->parameters(), 3);
  return model;
}

}  // namespace

TEST_CASE("an example is the window of its number, and has a target after every input") {
  const SmallTask task;
  REQUIRE(task->training().size() == 100);
  REQUIRE(task->validation().size() == 50);
  const std::vector<int64_t> numbers{99, 0, 41, 0};
  const auto batch = task->training().read(numbers);
  CHECK(batch.view.examples == 4);
  CHECK(batch.view.targets == 4 * kLength);
  const auto rows = batch_tensors(batch.view, 0, 4, at::kCPU).front();
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    std::vector<int64_t> tokens(kLength + 1);
    task.data().sources.front().training.read(numbers[row] * kLength, tokens);
    CHECK(at::equal(rows[static_cast<int64_t>(row)], at::tensor(tokens)));
  }
}

TEST_CASE("the parts of a validation add up to the whole whatever their number and batch") {
  const SmallTask task;
  const auto model = fresh_model(*task);
  for (const int64_t examples : {0, 1, 7, 50, 1000}) {
    const auto whole = evaluate(*model, task->validation(), {.examples = examples, .batch = 1});
    REQUIRE(whole.targets == kLength * examples_taken(examples, 50));
    for (const int64_t num_parts : {1, 2, 3, 8}) {
      for (const int64_t batch : {1, 3, 64}) {
        Validation sum;
        for (int64_t part = 0; part < num_parts; ++part) {
          const auto one = evaluate(
              *model, task->validation(),
              {.part = part, .num_parts = num_parts, .examples = examples, .batch = batch});
          sum.loss_sum += one.loss_sum;
          sum.targets += one.targets;
        }
        REQUIRE(sum.targets == whole.targets);
        REQUIRE(sum.loss_sum == Approx(whole.loss_sum).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("a validation is the autograd model's loss over the windows it takes") {
  const SmallTask task;
  const auto model = fresh_model(*task);
  auto oracle = small_model();
  oracle.parameters().values().copy_(model->parameters().values());
  // 5 of 50 windows: every tenth.
  double expected = 0;
  for (int64_t window = 0; window < 50; window += 10) {
    std::vector<int64_t> tokens(kLength + 1);
    task.data().sources.front().validation->read(window * kLength, tokens);
    const auto row = at::tensor(tokens).unsqueeze(0);
    expected +=
        kLength * oracle.loss(row.narrow(1, 0, kLength), row.narrow(1, 1, kLength)).item<double>();
  }
  const auto result = evaluate(*model, task->validation(), {.examples = 5, .batch = 2});
  CHECK(result.targets == 5 * kLength);
  CHECK(result.loss_sum == Approx(expected).epsilon(1e-5));
}

TEST_CASE("as many examples are taken as there are at most, and all for 0") {
  CHECK(examples_taken(0, 7) == 7);
  CHECK(examples_taken(3, 7) == 3);
  CHECK(examples_taken(9, 7) == 7);
}

TEST_CASE(
    "a task starts from the folder that its run names, which a checkpoint's config describes") {
  const SmallTask fresh;
  const auto model = fresh_model(*fresh);
  const TemporaryFolder models;
  write_hf_folder(
      models / "start", Json::parse(fresh->config_text()),
      named_parameters(model->parameters().layout(), model->parameters().host_values().pull()));
  RunConfig run;
  run.model.from = "start";
  run.data.sequence_length = kLength;
  SiteConfig site;
  site.models = models.path().string();
  const SmallTask task(run, site);
  CHECK(task->shape().hidden == kSmallConfig.hidden);
  const auto started = fresh_model(*task);
  CHECK(at::equal(started->parameters().values(), model->parameters().values()));
}

TEST_CASE("a checkpoint of a model that goes on keeps the length and the ids of its folder") {
  const SmallTask fresh;
  const auto model = fresh_model(*fresh);
  const TemporaryFolder models;
  const HfFacts facts{.positions = 8192, .bos = 1, .pad = 3, .eos = {5, 2}};
  write_hf_folder(
      models / "start", to_hugging_face({kSmallConfig, facts}),
      named_parameters(model->parameters().layout(), model->parameters().host_values().pull()),
      std::vector<NamedText>{{"tokenizer.json", "{}"}, {"generation_config.json", "{}"}});
  RunConfig run;
  run.model.from = "start";
  run.data.sequence_length = kLength;
  SiteConfig site;
  site.models = models.path().string();
  const SmallTask task(run, site);
  const auto config = from_hugging_face(Json::parse(task->config_text()), "config.json");
  CHECK(config == HfConfig{kSmallConfig, facts});
  REQUIRE(task->model_files().size() == 2);
  CHECK(task->model_files()[0].name == "tokenizer.json");
}

TEST_CASE("tokens that the model has no embedding for are refused") {
  auto run = small_run();
  run.model.vocabulary = kSmallConfig.vocabulary - 1;
  CHECK_THROWS_AS(SmallTask(run), ConfigError);
}

}  // namespace farstep
