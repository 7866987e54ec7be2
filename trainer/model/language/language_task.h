// The task of a run's language model: LLaMA learns to predict the next token.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokens/token_batch.h"
#include "trainer/model/language/companion_files.h"
#include "trainer/model/shape/hf_config.h"
#include "trainer/model/task.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

// Throws ConfigError naming `run_source` if the tokens of `data` need a larger vocabulary than the
// model has. What mends it depends on whether the model starts from the folder `from`; empty: no.
void require_vocabulary(const LlamaConfig& shape, const std::string& from, const TokenData& data,
                        const std::string& run_source);

class LanguageTask : public Task {
 public:
  // The task of a run at a site, on the site's tokens. `data` is null at a site that has none;
  // there are no examples then, and `tokens` is what is known of its documents. The model has the
  // shape that the run says, or that of the folder that it starts from. Throws ConfigError naming
  // `run_source` and the JSON path, also if the tokens need a larger vocabulary; or DataError
  // naming a file of that folder or of the data.
  LanguageTask(const SiteConfig& site, const RunConfig& run, const std::string& run_source,
               std::shared_ptr<const TokenData> data, const DocumentTokens& tokens = {});

  const LlamaConfig& shape() const { return shape_; }

  // Makes the model with the run's step and type of products.
  std::unique_ptr<TrainableModel> make_model(at::Device device, bool recompute) const override;
  // Sets the values of the folder that the run starts from, or fresh ones.
  void set_start_values(Parameters& parameters, uint64_t seed) const override;
  // Returns the config.json from which `transformers` builds the same model.
  std::string config_text() const override;
  // Returns the tokenizer's files, as companion_files() has them.
  std::span<const NamedText> model_files() const override { return files_; }
  ExampleForm example_form() const override {
    return token_form(sequence_length_, shape_.vocabulary);
  }
  // An example is a window of the run's sequence length.
  const TokenWindows& training() const override { return training_.value(); }
  // The mixture, if there are several sources. A run without validation may have no such examples.
  const TokenWindows& validation() const override { return validation_.value(); }

 private:
  const std::filesystem::path source_;  // Hugging Face folder to start from; empty: fresh values
  const LlamaConfig shape_;
  const ComputeType compute_;
  const StepKind step_;
  const int64_t sequence_length_;
  const std::shared_ptr<const TokenData> data_;  // null: none
  const HfFacts facts_;                          // of config.json
  std::vector<NamedText> files_;
  // nullopt if the data has no such split, or there is none.
  const std::optional<TokenWindows> training_, validation_;
};

}  // namespace farstep
