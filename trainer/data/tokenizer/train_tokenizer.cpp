#include "trainer/data/tokenizer/train_tokenizer.h"

#include <sentencepiece_trainer.h>

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"

namespace farstep {

namespace {

// Adapts a function that returns lines to the trainer's iterator interface.
class LineIterator : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::function<std::optional<std::string>()>& next_line)
      : next_line_(next_line), line_(next_line()) {}
  bool done() const override { return !line_.has_value(); }
  void Next() override { line_ = next_line_(); }
  const std::string& value() const override { return *line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::function<std::optional<std::string>()>& next_line_;
  std::optional<std::string> line_;
};

// The largest vocabulary, if SentencePiece's message says that the wanted one is too large.
std::optional<int64_t> most_pieces_in(const std::string& message) {
  constexpr std::string_view kBefore = "Please set it to a value <= ";
  const auto found = message.find(kBefore);
  if (found == std::string::npos) return std::nullopt;
  return std::strtoll(message.c_str() + found + kBefore.size(), nullptr, 10);
}

}  // namespace

// Byte fallback encodes text without pieces. Without normalisation and prefix, decode() inverts
// encode(). One thread gives the same file every time.
void train_tokenizer(const std::function<std::optional<std::string>()>& next_line,
                     int64_t vocabulary, const std::filesystem::path& out) {
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      // Lines come without their ends, so a newline can only be a piece by decree.
      {"user_defined_symbols", "\n,\t"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      // Ids as LLaMA's tokenizer has them.
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "2"},
  };
  LineIterator lines(next_line);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  if (!status.ok()) {
    if (const auto most = most_pieces_in(status.ToString())) {
      throw DataError(
          fmt::format("--train-vocabulary: {} pieces are more than this text gives: take at most "
                      "{}, or more text",
                      vocabulary, *most));
    }
    throw DataError(fmt::format("{}: no vocabulary of {} pieces comes from this text: {}",
                                out.string(), vocabulary, status.ToString()));
  }
  write_file_durably(out, model);
}

}  // namespace farstep
