#include "trainer/data/tokens/token_batch.h"

#include <fmt/format.h>

#include <memory>

namespace farstep {

TokenBatch::operator BatchView() const {
  return {.examples = sequences,
          .targets = sequences * length,
          .parts = {{DType::kI64, {length + 1}, std::as_bytes(std::span(tokens))}},
          .text = fmt::format("sequences of {} tokens", length)};
}

Batch TokenWindows::read(std::span<const int64_t> windows) const {
  const auto row_tokens = static_cast<std::size_t>(length_ + 1);
  const auto batch = std::make_shared<TokenBatch>();
  batch->sequences = std::ssize(windows);
  batch->length = length_;
  batch->tokens.resize(windows.size() * row_tokens);
  auto rest = std::span(batch->tokens);
  for (const int64_t window : windows) {
    // Windows overlap by one token: the last target of one is the first input of the next.
    dataset_.read(window * length_, rest.first(row_tokens));
    rest = rest.subspan(row_tokens);
  }
  return {.view = *batch, .memory = batch};
}

}  // namespace farstep
