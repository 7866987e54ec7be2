// farstep evaluate: validation loss of a model, and accuracy of an image classifier.
#include "trainer/model/evaluate.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/images/image_data.h"
#include "trainer/data/images/image_examples.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/convnet/convnet_folder.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/tasks/trained_model.h"

namespace farstep {

namespace {

struct EvaluateOptions {
  std::string model, data;
  int64_t sequence_length = 1024, windows = 0, batch = 8, threads = 1;
  bool json = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model, "a site's folder, a checkpoint, or a Hugging Face folder", kPositional);
    visit("data", data, "dataset folder", kRequired);
    visit("sequence_length", sequence_length, "tokens of one sequence", at_least(1));
    visit("windows", windows, "validation windows or images, spread over the set; 0 is all",
          at_least(0));
    visit("batch", batch, "sequences or images of one forward", at_least(1));
    visit("threads", threads, "processor threads", in_range(1, 4096));
    visit("json", json, "print one JSON object");
  }

  ValidationPart part() const { return {.examples = windows, .batch = batch}; }
};

void evaluate_language(const HfFolder& folder, const EvaluateOptions& options) {
  const TokenDataset dataset(options.data, kValidationSplit);
  const auto model = open_model(check_language_folder(folder), options.threads);
  // A token beyond the embedding would read other memory.
  if (dataset.vocabulary() > model->config().vocabulary) {
    throw DataError(fmt::format("{}: has tokens below {}, the model only {}", options.data,
                                dataset.vocabulary(), model->config().vocabulary));
  }
  const auto result =
      evaluate(*model, TokenWindows(dataset, options.sequence_length), options.part());
  const double loss = result.loss();
  if (options.json) {
    fmt::print("{}\n", Json{{"loss", loss}, {"tokens", result.targets}}.dump());
  } else {
    fmt::print("loss {:.4f}, perplexity {:.2f}, over {} tokens\n", loss, std::exp(loss),
               result.targets);
  }
}

void evaluate_images(const HfFolder& folder, const EvaluateOptions& options) {
  const ImageData data(options.data);
  const auto [config, net] = open_convnet(folder, options.threads);
  if (data.training.shape != config.images() || data.classes > config.classes) {
    throw DataError(fmt::format("{}: has images of {} in {} classes, the net is for {} in {}",
                                options.data, data.training.shape.text(), data.classes,
                                config.images().text(), config.classes));
  }
  const ImageExamples images(data.validation, config.statistics(), std::nullopt);
  const auto result = evaluate(*net, images, options.part());
  const double accuracy = result.accuracy().value();
  if (options.json) {
    fmt::print(
        "{}\n",
        Json{{"loss", result.loss()}, {"accuracy", accuracy}, {"images", result.targets}}.dump());
  } else {
    fmt::print("loss {:.4f}, accuracy {:.2f} %, over {} images\n", result.loss(), 100 * accuracy,
               result.targets);
  }
}

}  // namespace

int evaluate_command(const Arguments& arguments) {
  const auto options = parse_command_line<EvaluateOptions>("evaluate", arguments);
  if (!options) return 0;
  const auto folder = trained_model(options->model);
  if (is_convnet(folder.config)) {
    evaluate_images(folder, *options);
  } else {
    evaluate_language(folder, *options);
  }
  return 0;
}

}  // namespace farstep
