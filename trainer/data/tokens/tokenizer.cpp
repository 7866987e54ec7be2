// SentencePiece behind an interface of plain values. No other file sees its headers.
#include "trainer/data/tokens/tokenizer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

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

// Reads the model in `content`. Returns the error's text, which is empty for a valid model.
// SentencePiece returns most errors, but its trie throws at an empty piece.
std::string parse(const std::string& content, sentencepiece::SentencePieceProcessor& processor) {
  try {
    const auto status = processor.LoadFromSerializedProto(content);
    return status.ok() ? std::string() : status.ToString();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

struct Tokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
};

Tokenizer::Tokenizer(std::unique_ptr<Model> model) : model_(std::move(model)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  auto model = std::make_unique<Model>();
  if (const auto objection = parse(read_file(path), model->processor); !objection.empty()) {
    throw DataError(
        fmt::format("{}: byte 0: not a SentencePiece model: {}", path.string(), objection));
  }
  if (model->processor.eos_id() < 0) {
    throw DataError(fmt::format("{}: the model has no eos piece, which must end every document",
                                path.string()));
  }
  return Tokenizer(std::move(model));
}

// SentencePiece's processor is const after loading, so that many threads encode with one model.
std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  const auto status = model_->processor.Encode({text.data(), text.size()}, &ids);
  FARSTEP_CHECK(status.ok(), "SentencePiece cannot encode: {}", status.ToString());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    FARSTEP_CHECK(id >= 0 && id < vocabulary(), "token id {} of a vocabulary of {}", id,
                  vocabulary());
  }
  std::string text;
  const auto status = model_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  FARSTEP_CHECK(status.ok(), "SentencePiece cannot decode: {}", status.ToString());
  return text;
}

int64_t Tokenizer::vocabulary() const {
  return model_->processor.GetPieceSize();
}

int32_t Tokenizer::eos() const {
  return model_->processor.eos_id();
}

std::optional<int32_t> Tokenizer::bos() const {
  const int id = model_->processor.bos_id();
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

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
    throw DataError(fmt::format("{}: no vocabulary of {} pieces comes from this text: {}",
                                out.string(), vocabulary, status.ToString()));
  }
  write_file_durably(out, model);
}

}  // namespace farstep
