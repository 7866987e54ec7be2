#include "trainer/model/language/model_shape.h"

#include "trainer/model/language/model_folder.h"

namespace farstep {

std::filesystem::path model_source(const SiteConfig& site, const RunConfig& run) {
  return std::filesystem::path(site.models) / run.model.from;
}

LlamaConfig model_shape(const SiteConfig& site, const RunConfig& run,
                        const std::string& run_source) {
  if (run.model.from.empty()) return resolve(run.model, run_source);
  require_no_shape(run.model, run_source);
  return read_language_folder(model_source(site, run)).config.shape;
}

}  // namespace farstep
