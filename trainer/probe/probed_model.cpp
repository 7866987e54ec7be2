#include "trainer/probe/probed_model.h"

#include <algorithm>
#include <utility>

#include "trainer/data/images/image_examples.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/convnet/convnet.h"
#include "trainer/model/convnet/image_task.h"
#include "trainer/model/language/make_model.h"
#include "trainer/model/language/model_shape.h"
#include "trainer/model/llama/llama_layout.h"
#include "trainer/tasks/site_data.h"

namespace farstep {

namespace {

class ProbedLanguage : public ProbedModel {
 public:
  ProbedLanguage(LlamaConfig shape, const RunConfig& run)
      : shape_(std::move(shape)),
        compute_(run.inner.compute),
        step_(run.inner.step),
        length_(run.data.sequence_length) {}

  int64_t num_parameters() const override { return farstep::num_parameters(llama_layout(shape_)); }
  std::unique_ptr<TrainableModel> make(at::Device device, bool recompute) const override {
    return make_model(shape_, device, compute_, step_, recompute);
  }
  Batch random_batch(int64_t examples, std::minstd_rand& random) const override {
    const auto batch = std::make_shared<TokenBatch>(
        TokenBatch{.sequences = examples, .length = length_, .tokens = {}});
    batch->tokens.resize(static_cast<std::size_t>(examples * (length_ + 1)));
    for (auto& token : batch->tokens) {
      token = static_cast<int64_t>(random()) % shape_.vocabulary;
    }
    return {.view = *batch, .memory = batch};
  }
  // In the proportions of a model's step, so that the mean rate is that of a step.
  std::vector<heterogeneity::MatrixProduct> products() const override {
    const int64_t query_width = shape_.heads * shape_.head_size();
    const int64_t key_width = shape_.kv_heads * shape_.head_size();
    return {{shape_.hidden, query_width, 2 * shape_.layers},          // query, output
            {shape_.hidden, key_width, 2 * shape_.layers},            // key, value
            {shape_.hidden, shape_.intermediate, 2 * shape_.layers},  // gate, up
            {shape_.intermediate, shape_.hidden, shape_.layers},      // down
            {shape_.hidden, shape_.vocabulary, 1}};                   // head
  }
  int64_t rows_per_example() const override { return length_; }

 private:
  const LlamaConfig shape_;
  const ComputeType compute_;
  const StepKind step_;
  const int64_t length_;
};

class ProbedConvNet : public ProbedModel {
 public:
  ProbedConvNet(ConvNetConfig config, const RunConfig& run)
      : config_(std::move(config)), compute_(run.inner.compute), net_(list_net(config_)) {}

  int64_t num_parameters() const override { return farstep::num_parameters(net_.layout); }
  std::unique_ptr<TrainableModel> make(at::Device device, bool recompute) const override {
    return make_convnet(config_, device, compute_, recompute);
  }
  Batch random_batch(int64_t examples, std::minstd_rand& random) const override {
    const auto batch = std::make_shared<ImageBatch>(
        ImageBatch{.shape = config_.images(), .images = {}, .labels = {}});
    batch->images.resize(static_cast<std::size_t>(examples * batch->shape.size()));
    for (auto& value : batch->images) {
      value = static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 0.5F;
    }
    for (int64_t i = 0; i < examples; ++i) {
      batch->labels.push_back(static_cast<int64_t>(random()) % config_.classes);
    }
    return {.view = batch->view(), .memory = batch};
  }
  // A convolution multiplies a row for each pixel of its result.
  std::vector<heterogeneity::MatrixProduct> products() const override {
    std::vector<heterogeneity::MatrixProduct> products;
    for (const auto& [inner, columns, positions] : net_.products) {
      products.push_back({.inner = inner, .columns = columns, .times = positions});
    }
    return products;
  }
  int64_t rows_per_example() const override {
    return std::ranges::max(net_.products, {}, &LayerProduct::positions).positions;
  }

 private:
  const ConvNetConfig config_;
  const ComputeType compute_;
  const ListedNet net_;
};

}  // namespace

std::unique_ptr<ProbedModel> probed_model(const SiteConfig& site, const RunConfig& run,
                                          const std::string& run_source) {
  if (!run.is_of_images()) {
    return std::make_unique<ProbedLanguage>(model_shape(site, run, run_source), run);
  }
  SiteData data(site.data_folders(), run.model.family);
  return std::make_unique<ProbedConvNet>(convnet_of_run(run, run_source, *data.images()), run);
}

}  // namespace farstep
