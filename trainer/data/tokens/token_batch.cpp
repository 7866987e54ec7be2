#include "trainer/data/tokens/token_batch.h"

#include <fmt/format.h>

#include <array>
#include <memory>

namespace farstep {

ExampleForm token_form(int64_t length, int64_t vocabulary) {
  return {.parts = {{.dtype = DType::kI64, .shape = {length + 1}, .num_values = vocabulary}},
          .targets = length,
          .text = fmt::format("sequences of {} tokens", length)};
}

TokenBatch::operator BatchView() const {
  return view_of(token_form(length), sequences, std::array{std::as_bytes(std::span(tokens))});
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
