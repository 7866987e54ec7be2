#include "trainer/model/language/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// `logits` are on the CPU, so that a seed makes the same choices on all devices.
int64_t pick(const at::Tensor& all_logits, const GenerateSettings& settings,
             const at::Generator& generator) {
  const int64_t vocabulary = settings.vocabulary == 0 ? all_logits.size(0) : settings.vocabulary;
  const auto logits = all_logits.narrow(0, 0, vocabulary);
  if (settings.temperature == 0) return logits.argmax().item<int64_t>();
  const int64_t kept = settings.top_k == 0 ? vocabulary : std::min(settings.top_k, vocabulary);
  const auto [values, ids] = logits.topk(kept);  // the likeliest first
  auto chances = at::softmax(values / settings.temperature, 0);
  if (settings.top_p < 1) {
    // A token stays while those before it sum up to less. Before the likeliest there are none.
    const auto before = chances.cumsum(0) - chances;
    chances = chances * (before < settings.top_p);
  }
  return ids[chances.multinomial(1, /*replacement=*/false, generator).item<int64_t>()]
      .item<int64_t>();
}

}  // namespace

void generate(Decoder& decoder, std::vector<int64_t> prompt, const GenerateSettings& settings,
              const std::function<bool(int64_t)>& on_token) {
  FARSTEP_CHECK(!prompt.empty(), "the prompt has no tokens");
  const at::NoGradGuard no_grad;
  const auto generator = at::detail::createCPUGenerator(settings.seed);
  const int64_t capacity = decoder.capacity();
  decoder.clear();
  int64_t unread = std::min<int64_t>(capacity, std::ssize(prompt));  // the newest of `prompt`
  for (int64_t added = 0; added < settings.tokens; ++added) {
    if (decoder.length() + unread > capacity) {
      // Reading half anew every half a capacity costs little. Dropping the oldest token alone would
      // move all positions, and so cost a whole reading for each token.
      decoder.clear();
      unread = std::max<int64_t>(1, capacity / 2);
    }
    const auto ids = at::from_blob(prompt.data() + prompt.size() - unread, {unread}, at::kLong);
    prompt.push_back(pick(decoder.read(ids).cpu(), settings, generator));
    unread = 1;
    const bool is_end = std::ranges::find(settings.ends, prompt.back()) != settings.ends.end();
    if (is_end || !on_token(prompt.back())) return;
  }
}

}  // namespace farstep
