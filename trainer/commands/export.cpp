// farstep export: a model as a Hugging Face folder of its own.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/hf_folder.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/model/llama/llama_layout.h"
#include "trainer/tasks/trained_model.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string model, output, data;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model, "a site's folder, a checkpoint, or a Hugging Face folder", kPositional);
    visit("output", output, "folder to make: config.json and model.safetensors, in fp32",
          kRequired);
    visit("data", data, "dataset folder, to add its tokenizer");
  }
};

void add_tokenizer(const fs::path& data, const LlamaConfig& shape, const fs::path& output) {
  const auto tokenizer = Tokenizer::load(data);
  if (tokenizer->vocabulary() > shape.vocabulary) {
    throw DataError(fmt::format("{}: the tokenizer has {} pieces, the model {}", data.string(),
                                tokenizer->vocabulary(), shape.vocabulary));
  }
  make_folder(output);
  copy_tokenizer(data, output);
}

}  // namespace

int export_command(const Arguments& arguments) {
  const auto options = parse_command_line<ExportOptions>("export", arguments);
  if (!options) return 0;
  const fs::path output = options->output;
  // Refused, since an overwritten checkpoint would be lost to the run.
  if (fs::exists(output) && !fs::is_empty(output)) {
    throw ConfigError(fmt::format("--output {}: is not empty; name a new folder", output.string()));
  }
  const auto source = trained_language_model(options->model, "export");
  const auto shape = from_hugging_face(source.config, (source.path / kHfConfigFile).string());
  const auto layout = llama_layout(shape);
  std::vector<float> values(static_cast<std::size_t>(num_parameters(layout)));
  const auto parameters = named_parameters(layout, values);
  load_parameters(source, parameters);
  auto config = source.config;
  // Old and new versions of transformers call it differently.
  for (const char* name : {"dtype", "torch_dtype"}) {
    if (config.contains(name)) config[name] = "float32";
  }
  if (!options->data.empty()) add_tokenizer(options->data, shape, output);
  write_hf_folder(output, config, parameters);
  fmt::print("{}: {} parameters of {}\n", output.string(), values.size(), source.path.string());
  return 0;
}

}  // namespace farstep
