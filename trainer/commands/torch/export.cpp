// farstep export: a model as a Hugging Face folder of its own.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/model/language/companion_files.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/tasks/trained_model.h"

namespace farstep {

namespace {

struct ExportOptions {
  std::string model, output, data;
  WeightType dtype = WeightType::kFP32;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model, "a site's folder, a checkpoint, or a Hugging Face folder",
          a_folder(kPositional));
    visit(
        "output", output,
        "folder to make: config.json, model.safetensors, and the tokenizer's files that the model "
        "has beside it, with a tokenizer.json too",
        a_folder(kRequired));
    visit("dtype", dtype, "type of the weights");
    visit("data", data, "dataset folder, to take the tokenizer from it instead", a_folder());
  }
};

}  // namespace

int export_command(const Arguments& arguments) {
  const auto options = parse_command_line<ExportOptions>("export", arguments);
  if (!options) return 0;
  const auto source = check_language_folder(trained_language_model(options->model, "export"));
  if (!source.caution.empty()) spdlog::warn("{}", source.caution);
  const auto& path = source.folder.path;
  require_tokenizer_fits(options->data.empty() ? path : std::filesystem::path(options->data),
                         source.config.shape);
  auto files = companion_files(path, options->data);
  if (!options->data.empty() && std::ranges::none_of(files, has_vocabulary)) {
    throw ConfigError(fmt::format(
        "--data {}: has no tokenizer; name a folder that `farstep tokenize` made", options->data));
  }
  const auto notes = add_tokenizer_json(files);
  if (!notes.reason.empty()) {
    spdlog::warn(
        "no tokenizer.json is made of tokenizer.model: {}. `transformers` converts it by "
        "itself; programs that need a tokenizer.json do not open this model",
        notes.reason);
  }
  if (!notes.caution.empty()) spdlog::warn("tokenizer.json: {}", notes.caution);
  write_language_folder(options->output, source, options->dtype, files);
  fmt::print("{}: {} parameters of {} in {}, with {}\n", options->output,
             num_parameters(source.layout), path.string(), name_of(options->dtype),
             names_text(files));
  return 0;
}

}  // namespace farstep
