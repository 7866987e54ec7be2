#include "trainer/tasks/language_family.h"

#include "trainer/base/error.h"
#include "trainer/model/language/language_task.h"
#include "trainer/model/language/model_shape.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

std::vector<ParameterSpec> LanguageFamily::layout(const SiteOfRun& at) const {
  return llama_layout(model_shape(at.site, at.run, at.run_source));
}

std::string LanguageFamily::check_data(const SiteOfRun& at) const {
  const auto data = at.data.tokens();
  const auto& folder = at.site.data;
  const int64_t length = at.run.data.sequence_length;
  require_vocabulary(model_shape(at.site, at.run, at.run_source), *data, at.run_source, folder);
  const int64_t windows = data->training.num_windows(length);
  if (at.run.evaluate.every_rounds != 0) {
    if (!data->validation) {
      throw DataError(fmt::format(
          "{}: no {} shards: `farstep tokenize` with a --validation-fraction above 0 makes them; "
          "or set evaluate.every_rounds of the run to 0",
          folder, kValidationSplit));
    }
    data->validation->num_windows(length);
  }
  return fmt::format("{} windows of {} tokens", windows, length);
}

std::unique_ptr<Task> LanguageFamily::make_task(const SiteOfRun& at) const {
  return std::make_unique<LanguageTask>(at.site, at.run, at.run_source,
                                        at.data.is_named() ? at.data.tokens() : nullptr);
}

}  // namespace farstep
