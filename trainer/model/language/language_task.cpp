#include "trainer/model/language/language_task.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "trainer/base/error.h"
#include "trainer/model/language/companion_files.h"
#include "trainer/model/language/make_model.h"
#include "trainer/model/language/model_folder.h"
#include "trainer/model/language/model_shape.h"

namespace farstep {

void require_vocabulary(const LlamaConfig& shape, const std::string& from, const TokenData& data,
                        const std::string& run_source) {
  if (data.vocabulary() <= shape.vocabulary) return;
  if (!from.empty()) {
    throw ConfigError(fmt::format(
        "{}: model.from: {} has a vocabulary of {}, and the tokens of {} need at least {}: make "
        "them with the model's tokenizer, `farstep tokenize --tokenizer` with that folder",
        run_source, from, shape.vocabulary, data.sources.front().folder.string(),
        data.vocabulary()));
  }
  throw ConfigError(fmt::format(
      "{}: model.vocabulary: is {}; the tokens of {} need at least {}: set it to that", run_source,
      shape.vocabulary, data.sources.front().folder.string(), data.vocabulary()));
}

namespace {

// Of all sources, which have one tokenizer.
std::string folder_of(const std::shared_ptr<const TokenData>& data) {
  return data ? data->sources.front().folder.string() : "";
}

TokenWindows training_windows(const TokenData& data, int64_t length) {
  std::vector<WeightedTokens> datasets;
  for (const auto& source : data.sources) datasets.push_back({&source.training, source.weight});
  return TokenWindows(std::move(datasets), length, /*by_weight=*/false);
}

TokenWindows validation_windows(const TokenData& data, int64_t length) {
  std::vector<WeightedTokens> datasets;
  for (const auto& source : data.sources) datasets.push_back({&*source.validation, source.weight});
  return TokenWindows(std::move(datasets), length, /*by_weight=*/true);
}

HfFacts facts_of(const std::filesystem::path& source, const DocumentTokens& tokens,
                 int64_t length) {
  std::optional<HfFacts> start;
  if (!source.empty()) {
    const auto folder = read_language_folder(source);
    if (!folder.caution.empty()) spdlog::warn("{}", folder.caution);
    start = folder.config.facts;
  }
  return trained_facts(start, tokens, length);
}

}  // namespace

LanguageTask::LanguageTask(const SiteConfig& site, const RunConfig& run,
                           const std::string& run_source, std::shared_ptr<const TokenData> data,
                           const DocumentTokens& tokens)
    : source_(run.model.from.empty() ? std::filesystem::path() : model_source(site, run)),
      shape_(model_shape(site, run, run_source)),
      compute_(run.inner.compute),
      step_(run.inner.step),
      sequence_length_(run.data.sequence_length),
      data_(std::move(data)),
      facts_(facts_of(source_, data_ ? document_tokens(folder_of(data_), data_->eos()) : tokens,
                      sequence_length_)),
      files_(companion_files(source_, folder_of(data_))),
      training_(data_ ? std::optional(training_windows(*data_, sequence_length_)) : std::nullopt),
      validation_(data_ && data_->validates()
                      ? std::optional(validation_windows(*data_, sequence_length_))
                      : std::nullopt) {
  if (data_) require_vocabulary(shape_, run.model.from, *data_, run_source);
  set_generation_ends(files_, facts_.eos);
}

std::unique_ptr<TrainableModel> LanguageTask::make_model(at::Device device, bool recompute) const {
  return farstep::make_model(shape_, device, compute_, step_, recompute);
}

void LanguageTask::set_start_values(Parameters& parameters, uint64_t seed) const {
  if (source_.empty()) return Task::set_start_values(parameters, seed);
  load_parameters(read_hf_folder(source_),
                  named_parameters(parameters.layout(), parameters.host_values().pull()));
  parameters.host_values().push();
}

std::string LanguageTask::config_text() const {
  return to_hugging_face({shape_, facts_}).dump(2);
}

}  // namespace farstep
