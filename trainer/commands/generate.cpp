// farstep generate: text from a checkpoint.
#include "trainer/model/language/generate.h"

#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/tasks/trained_model.h"

namespace farstep {

namespace {

struct GenerateOptions {
  std::string model, data, prompt;
  int64_t tokens = 100, context = 1024, top_k = 50, seed = 1, threads = 1;
  double temperature = 0.8;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model, "a site's folder, a checkpoint, or a Hugging Face folder", kPositional);
    visit("data", data, "dataset folder, or another one or a file, for its tokenizer", kRequired);
    visit("prompt", prompt, "text to continue", kRequired);
    visit("tokens", tokens, "tokens to add at most", at_least(0));
    visit("context", context, "tokens that the model sees at most", at_least(1));
    visit("temperature", temperature, "0 takes the likeliest token always", at_least(0));
    visit("top_k", top_k, "choose among so many likeliest; 0 is all", at_least(0));
    visit("seed", seed, "of the choices", at_least(0));
    visit("threads", threads, "processor threads", in_range(1, 4096));
  }
};

}  // namespace

int generate_command(const Arguments& arguments) {
  const auto options = parse_command_line<GenerateOptions>("generate", arguments);
  if (!options) return 0;
  const auto folder = trained_language_model(options->model, "generate");
  const auto tokenizer = Tokenizer::load(options->data);
  const auto model = open_model(folder, options->threads);
  if (tokenizer->vocabulary() > model->config().vocabulary) {
    throw DataError(fmt::format("{}: the tokenizer has {} pieces, the model {}", options->data,
                                tokenizer->vocabulary(), model->config().vocabulary));
  }
  auto ids = tokenizer->encode(options->prompt);
  generate(*model, {ids.begin(), ids.end()},
           {.tokens = options->tokens,
            .context = options->context,
            .temperature = options->temperature,
            .top_k = options->top_k,
            .seed = static_cast<uint64_t>(options->seed),
            .eos = tokenizer->eos()},
           [&ids](int64_t id) { ids.push_back(static_cast<int32_t>(id)); });
  // Decodes all ids at once: a character may be spread over several byte pieces.
  fmt::print("{}\n", tokenizer->decode(ids));
  return 0;
}

}  // namespace farstep
