// Trains a SentencePiece vocabulary on text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace farstep {

// Trains a byte-pair vocabulary of exactly `vocabulary` pieces on the lines from `next_line`, until
// it returns nullopt, and writes the model to `out`. unk, bos and eos are 0, 1 and 2. Newline and
// tab are pieces of their own. Other characters without a piece become bytes. Nothing is
// normalised, so decode() inverts encode() for all valid UTF-8 without U+2581. The same lines give
// the same file. Throws DataError if the text has too few pieces, or needs more.
void train_tokenizer(const std::function<std::optional<std::string>()>& next_line,
                     int64_t vocabulary, const std::filesystem::path& out);

}  // namespace farstep
