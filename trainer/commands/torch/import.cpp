// farstep import: a model folder of other programs, checked and copied for a run to start from.
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/model/language/companion_files.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

struct ImportOptions {
  std::string model, output;
  WeightType dtype = WeightType::kFP32;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("model", model,
          "Hugging Face folder of a LLaMA: config.json, and model.safetensors or its shards",
          a_folder(kPositional));
    visit("output", output,
          "folder to make: the model in one file, with its tokenizer; empty: only check the model",
          a_folder());
    visit(
        "dtype", dtype,
        "type of the weights in that folder; bf16 halves it, and loses nothing of a model in bf16");
  }
};

std::string rope_text(const LlamaConfig& shape) {
  auto text = fmt::format("theta {}", shape.rope_theta);
  if (const auto& scaling = shape.rope_scaling) {
    text += fmt::format(", scaled as llama3 by {} beyond {} tokens", scaling->factor,
                        scaling->original_max_position_embeddings);
  }
  return text;
}

// Which tokens begin and end a text, as `tokenize`, `evaluate` and `generate` have it.
std::string tokens_text(const LanguageFolder& model) {
  const auto& path = model.folder.path;
  std::string begin = "not known";
  if (has_tokenizer(path)) {
    try {
      const auto opening = Tokenizer::load(path)->opening();
      begin = opening.empty() ? "none" : fmt::format("{}", fmt::join(opening, " "));
    } catch (const DataError& error) {
      spdlog::warn("Farstep cannot use this tokenizer: {}", error.what());
    }
  }
  const auto ends = end_tokens(model);
  return fmt::format("begin {}, end {}", begin,
                     ends.empty() ? "none" : fmt::format("{}", fmt::join(ends, " or ")));
}

void print_model(const LanguageFolder& model, const std::vector<NamedText>& files) {
  const auto& [shape, facts] = model.config;
  fmt::print("{}: {} parameters in {} file{}\n", model.folder.path.string(),
             count_text(num_parameters(model.layout)), model.folder.files.size(),
             model.folder.files.size() == 1 ? "" : "s");
  fmt::print("  shape       {} layers, hidden {}, intermediate {}, {} heads of {}, {} for keys\n",
             shape.layers, shape.hidden, shape.intermediate, shape.heads, shape.head_size(),
             shape.kv_heads);
  fmt::print("  vocabulary  {}, embedding and head {}\n", shape.vocabulary,
             shape.tied_embeddings ? "tied" : "apart");
  fmt::print("  positions   {}, {}\n", facts.positions, rope_text(shape));
  fmt::print("  tokens      {}\n", tokens_text(model));
  fmt::print("  beside it   {}\n", names_text(files));
  if (!model.caution.empty()) spdlog::warn("{}", model.caution);
}

// What a user writes next.
void print_next_steps(const fs::path& folder, const LanguageFolder& model,
                      const std::vector<NamedText>& files) {
  const auto path = fs::absolute(folder).lexically_normal();
  const auto vocabulary = std::ranges::find_if(files, has_vocabulary);
  fmt::print("To train it on your text:\n");
  if (vocabulary == files.end()) {
    fmt::print("  it has no tokenizer beside it: get tokenizer.json or tokenizer.model first\n");
  } else {
    fmt::print("  farstep tokenize TEXT --output DATA --tokenizer {}\n",
               (path / vocabulary->name).string());
  }
  fmt::print(
      "  in the run file: \"model\": {{\"from\": \"{}\"}}, and data.sequence_length up to {}\n",
      path.string(), model.config.facts.positions);
}

}  // namespace

int import_command(const Arguments& arguments) {
  const auto options = parse_command_line<ImportOptions>("import", arguments);
  if (!options) return 0;
  const auto model = read_language_folder(options->model);
  require_tokenizer_fits(model.folder.path, model.config.shape);
  const auto files = companion_files(model.folder.path, "");
  print_model(model, files);
  if (options->output.empty()) {
    fmt::print("Farstep can train this model.\n");
    print_next_steps(model.folder.path, model, files);
    return 0;
  }
  write_language_folder(options->output, model, options->dtype, files);
  fmt::print("copied to {} in {}\n", options->output, name_of(options->dtype));
  print_next_steps(options->output, model, files);
  return 0;
}

}  // namespace farstep
