#include "trainer/data/tokens/token_batch.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "trainer/base/error.h"

namespace farstep {

ExampleForm token_form(int64_t length, int64_t vocabulary) {
  return {.parts = {{.dtype = DType::kI64, .shape = {length + 1}, .num_values = vocabulary}},
          .targets = length,
          .text = fmt::format("sequences of {} tokens", length)};
}

TokenBatch::operator BatchView() const {
  return view_of(token_form(length), sequences, std::array{std::as_bytes(std::span(tokens))});
}

int64_t TokenWindows::size() const {
  int64_t size = 0;
  for (const auto& source : sources()) size += source.size;
  return size;
}

std::vector<SourceShare> TokenWindows::sources() const {
  std::vector<SourceShare> sources;
  for (const auto& dataset : datasets_) {
    sources.push_back({dataset.tokens->num_windows(length_), dataset.weight});
  }
  if (!by_weight_ || sources.size() == 1) return sources;
  const int64_t total = most_without_repeats(sources);
  if (total == 0) throw DataError("the mixture's validation splits are too small for its weights");
  const auto shares = shares_of(total, sources);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i].size = shares[i];
  return sources;
}

Batch TokenWindows::read(std::span<const int64_t> windows) const {
  const auto shares = sources();
  const auto row_tokens = static_cast<std::size_t>(length_ + 1);
  const auto batch = std::make_shared<TokenBatch>();
  batch->sequences = std::ssize(windows);
  batch->length = length_;
  batch->tokens.resize(windows.size() * row_tokens);
  auto rest = std::span(batch->tokens);
  for (int64_t number : windows) {
    std::size_t source = 0;
    while (source + 1 < shares.size() && number >= shares[source].size) {
      number -= shares[source++].size;
    }
    const auto& tokens = *datasets_[source].tokens;
    const int64_t window =
        by_weight_ ? number * tokens.num_windows(length_) / shares[source].size : number;
    // Windows overlap by one token: the last target of one is the first input of the next.
    tokens.read(window * length_, rest.first(row_tokens));
    rest = rest.subspan(row_tokens);
  }
  return {.view = *batch, .memory = batch};
}

}  // namespace farstep
