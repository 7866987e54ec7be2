#include "trainer/model/language/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

int64_t pick(const at::Tensor& logits, const GenerateSettings& settings,
             const at::Generator& generator) {
  if (settings.temperature == 0) return logits.argmax().item<int64_t>();
  const int64_t vocabulary = logits.size(0);
  const int64_t kept = settings.top_k == 0 ? vocabulary : std::min(settings.top_k, vocabulary);
  const auto [values, ids] = logits.topk(kept);
  const auto chances = at::softmax(values / settings.temperature, 0);
  return ids[chances.multinomial(1, /*replacement=*/false, generator).item<int64_t>()]
      .item<int64_t>();
}

}  // namespace

void generate(Llama& model, std::vector<int64_t> prompt, const GenerateSettings& settings,
              const std::function<void(int64_t)>& on_token) {
  FARSTEP_CHECK(!prompt.empty(), "the prompt has no tokens");
  const at::NoGradGuard no_grad;
  const auto generator = at::detail::createCPUGenerator(settings.seed);
  for (int64_t added = 0; added < settings.tokens; ++added) {
    const auto seen = std::min(settings.context, static_cast<int64_t>(prompt.size()));
    const auto inputs = at::from_blob(prompt.data() + prompt.size() - seen, {1, seen}, at::kLong)
                            .to(model.device());
    // All of the context again for each token. A cache of keys would be faster, but this command
    // only shows samples.
    const auto logits = model.logits(inputs)[0][seen - 1].cpu();
    prompt.push_back(pick(logits, settings, generator));
    if (prompt.back() == settings.eos) return;
    on_token(prompt.back());
  }
}

}  // namespace farstep
