#include "trainer/tasks/language_family.h"

#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"
#include "trainer/model/language/language_task.h"
#include "trainer/model/language/model_shape.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

namespace {

// What the task of a site without tokens must know of them.
struct TokenFacts {
  std::optional<int64_t> eos, bos;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("eos", eos, "the token that ends a document", at_least(0));
    visit("bos", bos, "the token that begins one, for config.json alone", at_least(0));
  }
};

}  // namespace

std::vector<ParameterSpec> LanguageFamily::layout(const SiteOfRun& at) const {
  return llama_layout(model_shape(at.site, at.run, at.run_source));
}

PassMemory LanguageFamily::pass_memory(const SiteOfRun& at, const DeviceConfig& device,
                                       int64_t examples) const {
  return llama_pass_memory(model_shape(at.site, at.run, at.run_source),
                           {device, at.run.inner.compute, at.run.inner.step}, examples,
                           at.run.data.sequence_length);
}

RunData LanguageFamily::check_data(const SiteOfRun& at) const {
  const auto data = at.data.tokens();
  const int64_t length = at.run.data.sequence_length;
  require_vocabulary(model_shape(at.site, at.run, at.run_source), at.run.model.from, *data,
                     at.run_source);
  if (data->sources.size() > 1 && at.run.data.order != DataOrder::kShuffled) {
    throw ConfigError(
        fmt::format("{}: data.order: sequential takes one folder of data, and {} names {}",
                    at.run_source, at.site.name, data->sources.size()));
  }
  std::vector<SourceShare> shares;
  int64_t windows = 0;
  for (const auto& source : data->sources) {
    shares.push_back({source.training.num_windows(length), source.weight});
    windows += shares.back().size;
    if (at.run.evaluate.every_rounds == 0) continue;
    if (!source.validation) {
      throw DataError(fmt::format(
          "{}: no {} shards: `farstep tokenize` with a --validation-fraction above 0 makes them; "
          "or set evaluate.every_rounds of the run to 0",
          source.folder.string(), kValidationSplit));
    }
    source.validation->num_windows(length);
  }
  const auto in_epoch = shares_of(windows, shares);
  std::string text = fmt::format("{} windows of {} tokens", windows, length);
  for (std::size_t i = 0; shares.size() > 1 && i < shares.size(); ++i) {
    const auto& folder = data->sources[i].folder;
    if (in_epoch[i] == 0) {
      throw DataError(fmt::format(
          "{}: its weight is too small: it has none of an epoch's {} windows; raise its "
          "mixture[].weight, or take it out of the mixture",
          folder.string(), windows));
    }
    text += fmt::format("{} {} of {} in {}", i == 0 ? "; an epoch takes" : ",", in_epoch[i],
                        shares[i].size, folder.filename().string());
  }
  return {text, windows};
}

Json LanguageFamily::data_facts(const SiteOfRun& at) const {
  const auto data = at.data.tokens();
  const auto tokens = document_tokens(data->sources.front().folder, data->eos());
  return to_json(TokenFacts{.eos = tokens.eos, .bos = tokens.bos});
}

std::unique_ptr<Task> LanguageFamily::make_task(const SiteOfRun& at) const {
  if (at.data.is_named()) {
    return std::make_unique<LanguageTask>(at.site, at.run, at.run_source, at.data.tokens());
  }
  TokenFacts facts;
  if (!at.data.facts().is_null()) {
    facts = read_json<TokenFacts>(at.data.facts(), "what the master told of its tokens");
  }
  return std::make_unique<LanguageTask>(at.site, at.run, at.run_source, nullptr,
                                        DocumentTokens{.eos = facts.eos, .bos = facts.bos});
}

}  // namespace farstep
