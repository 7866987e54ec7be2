// Reading, encoding and writing overlap. The reader cuts text into pieces and hands them to many
// encoders; their tokens are written in the order of the pieces. So the dataset has the same bytes
// for any number of threads.
#include "trainer/data/tokens/tokenize.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/base/worker.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer/train_tokenizer.h"
#include "trainer/data/tokens/corpus.h"
#include "trainer/data/tokens/token_file.h"

namespace farstep {

namespace {

using Progress = std::function<void(const TokenizeProgress&)>;

// Encodes pieces of text on many threads and appends their tokens in order of the pieces.
class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, int64_t threads, const Progress& progress)
      : tokenizer_(tokenizer), progress_(progress) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    while (static_cast<int64_t>(workers_.size()) < threads) {
      workers_.push_back(std::make_unique<Worker>());
    }
  }

  // Adds the next piece of the text of `split`. `share_done` and `what` are for progress.
  void add(TextPiece piece, SplitWriter& split, double share_done, const std::string& what) {
    // A batch belongs to one split, whose shards are written in order.
    if (batch_.split != &split) submit();
    batch_.split = &split;
    batch_.documents += piece.ends_document ? 1 : 0;
    batch_.bytes += static_cast<int64_t>(piece.text.size());
    batch_.share_done = share_done;
    batch_.what = what;
    batch_.pieces.push_back(std::move(piece));
    if (batch_.bytes >= kBatchBytes) submit();
  }

  int64_t bytes() const { return bytes_; }
  int64_t tokens() const { return tokens_; }
  // Encodes and writes the remaining pieces.
  void finish() {
    submit();
    while (!submitted_.empty()) write_oldest();
  }

 private:
  static constexpr int64_t kBatchBytes = 1 << 15;  // small documents share a task

  struct Batch {
    std::vector<TextPiece> pieces;
    SplitWriter* split = nullptr;
    int64_t documents = 0;
    int64_t bytes = 0;
    double share_done = 0;
    std::string what;
    std::future<std::vector<int32_t>> tokens;
  };

  void submit() {
    if (batch_.pieces.empty()) return;
    // In turn: batches are of like size, so no common queue is needed.
    auto& worker = *workers_[num_submitted_++ % workers_.size()];
    batch_.tokens = worker.submit([this, pieces = std::move(batch_.pieces)] {
      std::vector<int32_t> tokens;
      for (const auto& piece : pieces) {
        tokenizer_.encode_part(piece.text, piece.begins_document, tokens);
        if (piece.ends_document) tokens.push_back(tokenizer_.eos());
      }
      return tokens;
    });
    submitted_.push_back(std::exchange(batch_, {}));
    // Bounds the memory, because reading is faster than encoding.
    if (submitted_.size() > 4 * workers_.size()) write_oldest();
  }

  // Waits for the oldest batch, though a later one may be ready: the order of the pieces is the
  // order of the tokens. An exception of a worker comes out here.
  void write_oldest() {
    Batch batch = std::move(submitted_.front());
    submitted_.pop_front();
    const auto tokens = batch.tokens.get();
    batch.split->append(tokens, batch.documents, batch.bytes);
    bytes_ += batch.bytes;
    tokens_ += static_cast<int64_t>(tokens.size());
    progress_({batch.share_done, batch.what, bytes_, tokens_});
  }

  const Tokenizer& tokenizer_;
  const Progress& progress_;
  Batch batch_;                     // not yet submitted
  int64_t bytes_ = 0, tokens_ = 0;  // written
  std::deque<Batch> submitted_;
  std::size_t num_submitted_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;  // the last member: their tasks use the others
};

// The documents that are no text. When they are refused, the rest of the input is read for more of
// them, so that one call names them all.
class Faults {
 public:
  explicit Faults(BadText rule) : rule_(rule) {}

  void add(const std::filesystem::path& file, const std::string& fault) {
    ++count_;
    if (named_.size() == kMostNamed) return;
    named_.push_back(fmt::format("{}: {}", file.string(), fault));
    if (rule_ == BadText::kSkip) spdlog::warn("left out: {}", named_.back());
  }
  int64_t count() const { return count_; }
  // Whether nothing is to be written any more.
  bool ended() const { return count_ > 0 && rule_ == BadText::kRefuse; }

  // Throws DataError with the faults, if they are refused. Says how many were left out else.
  void finish() const {
    const auto unnamed = count_ - static_cast<int64_t>(named_.size());
    if (rule_ == BadText::kSkip) {
      if (unnamed > 0) spdlog::warn("left out: {} documents more", unnamed);
      return;
    }
    if (count_ == 0) return;
    std::string text;
    for (const auto& fault : named_) text += fault + "\n";
    if (unnamed > 0) text += fmt::format("and {} more\n", unnamed);
    throw DataError(
        fmt::format("{}mend the text, or leave such documents out with --bad-text skip", text));
  }

 private:
  static constexpr std::size_t kMostNamed = 20;

  const BadText rule_;
  std::vector<std::string> named_;
  int64_t count_ = 0;
};

void require_consistent(const TokenizeOptions& options) {
  if (options.inputs.empty()) throw ConfigError("inputs: name at least one text file or folder");
  if (options.output.empty()) throw ConfigError("output: name the dataset folder to make");
  // Both or neither would leave open which vocabulary counts.
  if (options.tokenizer.empty() == (options.train_vocabulary == 0)) {
    throw ConfigError(
        "give either tokenizer (a model to use) or train_vocabulary (pieces to train)");
  }
  if (options.token_files && options.tokenizer.empty()) {
    throw ConfigError("token_files: name the tokenizer that made their ids");
  }
  if (!options.end_token.empty() && options.tokenizer.empty()) {
    throw ConfigError("end_token: a vocabulary that is trained has its own, </s>; leave this out");
  }
}

// Puts the tokenizer into the dataset folder, so that it has all that decodes its tokens.
std::unique_ptr<const Tokenizer> prepare_tokenizer(const TokenizeOptions& options,
                                                   const std::vector<InputFile>& files,
                                                   const std::filesystem::path& folder,
                                                   const Progress& progress) {
  if (options.train_vocabulary > 0) {
    progress(
        {0, fmt::format("training a vocabulary of {} pieces", options.train_vocabulary), 0, 0});
    TrainingLines lines(files, options.text_field);
    const auto model = folder / kTokenizerFile;
    train_tokenizer([&] { return lines(); }, options.train_vocabulary, model);
    return Tokenizer::load(model);
  }
  // From the file that the user named, so that a message names it too.
  auto tokenizer = Tokenizer::load(options.tokenizer, options.end_token);
  copy_tokenizer(options.tokenizer, folder, options.end_token);
  return tokenizer;
}

Json facts_of(const SplitFacts& facts) {
  return {{"shards", facts.shards},
          {"documents", facts.documents},
          {"bytes", facts.bytes},
          {"tokens", facts.tokens}};
}

Json facts_of(const TokenizeResult& result, const TokenizeOptions& options,
              const Tokenizer& tokenizer, const std::vector<InputFile>& files) {
  Json sources = Json::array();
  for (const auto& file : files) {
    sources.push_back({{"path", file.path.string()}, {"bytes", file.bytes}});
  }
  return {
      {"format", 1},
      {"vocabulary", result.vocabulary},
      {"eos", tokenizer.eos()},
      {"token_bytes", token_bytes_for(result.vocabulary)},
      {"tokenizer_digest", checksum_text(tokenizer.digest())},
      {"validation_fraction", options.validation_fraction},
      {"skipped_documents", result.skipped},
      {"splits",
       {{kTrainSplit, facts_of(result.train)}, {kValidationSplit, facts_of(result.validation)}}},
      {"sources", sources}};
}

// Appends the ids of a token file. A file that is not named as one to validate with has its
// validation part at its end, as a text has.
void copy_tokens(const InputFile& file, double validation_fraction, const Tokenizer& tokenizer,
                 SplitWriter& train, SplitWriter& validation) {
  constexpr std::size_t kMostTokens = std::size_t{1} << 20;
  TokenFile source(file.path);
  const auto share = TokenFile::validates(file.path) ? 1 : validation_fraction;
  auto trained = std::llround(static_cast<double>(source.num_tokens()) * (1 - share));
  std::vector<int32_t> ids;
  for (int64_t left = source.num_tokens(); left > 0; left -= std::ssize(ids)) {
    auto& split = trained > 0 ? train : validation;
    const auto most = static_cast<std::size_t>(trained > 0 ? trained : left);
    source.read(std::min(most, kMostTokens), tokenizer.vocabulary(), ids);
    split.append(ids, std::count(ids.begin(), ids.end(), tokenizer.eos()), 0);
    trained -= std::ssize(ids);
  }
}

}  // namespace

// Everything goes to the staging folder, which replaces the output at the end.
TokenizeResult tokenize(const TokenizeOptions& options, const Progress& progress) {
  require_consistent(options);
  const auto files = list_input_files(options.inputs);
  StagingFolder staging(options.output);
  const auto tokenizer = prepare_tokenizer(options, files, staging.path(), progress);
  const auto open_split = [&](std::string_view split) {
    return SplitWriter(staging.path(), split, tokenizer->vocabulary(), tokenizer->eos(),
                       options.shard_tokens);
  };
  SplitWriter train = open_split(kTrainSplit);
  SplitWriter validation = open_split(kValidationSplit);

  Faults faults(options.bad_text);
  Encoder encoder(*tokenizer, options.threads, progress);
  // Progress counts bytes of the files as they lie on the disk: only these are known in advance.
  double total_bytes = 0, done_bytes = 0;
  for (const auto& file : files) total_bytes += static_cast<double>(file.bytes);
  for (const auto& file : files) {
    const auto what = file.path.filename().string();
    const auto file_bytes = static_cast<double>(file.bytes);
    if (options.token_files && TokenFile::is_one(file.path)) {
      encoder.finish();  // what came before comes before
      copy_tokens(file, options.validation_fraction, *tokenizer, train, validation);
      done_bytes += file_bytes;
      progress({done_bytes / total_bytes, what, encoder.bytes(), encoder.tokens()});
      continue;
    }
    const TextRules rules = {
        options.validation_fraction, options.text_field,
        [&](std::string_view text, std::size_t place) { return tokenizer->may_cut(text, place); },
        [&](const std::string& fault) { faults.add(file.path, fault); }};
    const auto documents = for_each_piece(file, rules, [&](TextPiece piece) {
      if (faults.ended()) return;
      const double share = (done_bytes + piece.file_share * file_bytes) / total_bytes;
      auto& split = piece.validation ? validation : train;
      encoder.add(std::move(piece), split, share, what);
    });
    if (documents == 0) spdlog::warn("{}: has no text, and is left out", file.path.string());
    done_bytes += file_bytes;
  }
  faults.finish();
  encoder.finish();

  const TokenizeResult result{tokenizer->vocabulary(), static_cast<int64_t>(files.size()),
                              faults.count(), train.finish(), validation.finish()};
  if (result.train.tokens == 0 ||
      (result.validation.tokens == 0 && options.validation_fraction > 0)) {
    throw DataError(fmt::format(
        "{}: too little text to keep {} of it for validation; add text, or choose another share",
        options.inputs.front(), options.validation_fraction));
  }
  // Last: whoever finds the folder finds a whole dataset.
  staging.commit(facts_of(result, options, *tokenizer, files));
  return result;
}

}  // namespace farstep
