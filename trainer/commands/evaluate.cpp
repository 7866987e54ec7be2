// farstep evaluate: validation loss of a model.
#include "trainer/model/evaluate.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/language/model_folder.h"

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
    visit("windows", windows, "validation windows, spread over the set; 0 is all", at_least(0));
    visit("batch", batch, "sequences of one forward", at_least(1));
    visit("threads", threads, "processor threads", in_range(1, 4096));
    visit("json", json, "print one JSON object");
  }
};

}  // namespace

int evaluate_command(const Arguments& arguments) {
  const auto options = parse_command_line<EvaluateOptions>("evaluate", arguments);
  if (!options) return 0;
  const TokenDataset dataset(options->data, kValidationSplit);
  const auto model = open_model(options->model, options->threads);
  // A token beyond the embedding would read other memory.
  if (dataset.vocabulary() > model->config().vocabulary) {
    throw DataError(fmt::format("{}: has tokens below {}, the model only {}", options->data,
                                dataset.vocabulary(), model->config().vocabulary));
  }
  const auto result = evaluate(*model, TokenWindows(dataset, options->sequence_length),
                               {.examples = options->windows, .batch = options->batch});
  const double loss = result.loss();
  if (options->json) {
    fmt::print("{}\n", Json{{"loss", loss}, {"tokens", result.targets}}.dump());
  } else {
    fmt::print("loss {:.4f}, perplexity {:.2f}, over {} tokens\n", loss, std::exp(loss),
               result.targets);
  }
  return 0;
}

}  // namespace farstep
