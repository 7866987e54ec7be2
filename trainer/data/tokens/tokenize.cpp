// Reading, encoding and writing overlap. The reader cuts text into pieces and hands them to many
// encoders; their tokens are written in the order of the pieces. So the dataset has the same bytes
// for any number of threads.
#include "trainer/data/tokens/tokenize.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/base/worker.h"
#include "trainer/data/tokens/corpus.h"
#include "trainer/data/tokens/tokenizer.h"

namespace farstep {

namespace {

using Progress = std::function<void(double, const std::string&)>;

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
        const auto ids = tokenizer_.encode(piece.text);
        tokens.insert(tokens.end(), ids.begin(), ids.end());
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
    batch.split->append(batch.tokens.get(), batch.documents, batch.bytes);
    progress_(batch.share_done, batch.what);
  }

  const Tokenizer& tokenizer_;
  const Progress& progress_;
  Batch batch_;  // not yet submitted
  std::deque<Batch> submitted_;
  std::size_t num_submitted_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;  // the last member: their tasks use the others
};

void require_consistent(const TokenizeOptions& options) {
  if (options.inputs.empty()) throw ConfigError("inputs: name at least one text file or folder");
  if (options.output.empty()) throw ConfigError("output: name the dataset folder to make");
  // Both or neither would leave open which vocabulary counts.
  if (options.tokenizer.empty() == (options.train_vocabulary == 0)) {
    throw ConfigError(
        "give either tokenizer (a model to use) or train_vocabulary (pieces to train)");
  }
}

Tokenizer prepare_tokenizer(const TokenizeOptions& options, const std::vector<InputFile>& files,
                            const std::filesystem::path& folder, const Progress& progress) {
  const auto model = folder / kTokenizerFile;
  if (options.train_vocabulary > 0) {
    progress(0, fmt::format("training a vocabulary of {} pieces", options.train_vocabulary));
    TrainingLines lines(files);
    train_tokenizer([&] { return lines(); }, options.train_vocabulary, model);
  } else {
    // A copy, so that the dataset folder has all that decodes its tokens.
    write_file_durably(model, read_file(options.tokenizer));
  }
  return Tokenizer::load(model);
}

Json facts_of(const SplitFacts& facts) {
  return {{"shards", facts.shards},
          {"documents", facts.documents},
          {"bytes", facts.bytes},
          {"tokens", facts.tokens}};
}

Json facts_of(const TokenizeResult& result, const TokenizeOptions& options, int32_t eos,
              const std::vector<InputFile>& files) {
  Json sources = Json::array();
  for (const auto& file : files) {
    sources.push_back({{"path", file.path.string()}, {"bytes", file.bytes}});
  }
  return {
      {"format", 1},
      {"vocabulary", result.vocabulary},
      {"eos", eos},
      {"token_bytes", token_bytes_for(result.vocabulary)},
      {"validation_fraction", options.validation_fraction},
      {"splits",
       {{kTrainSplit, facts_of(result.train)}, {kValidationSplit, facts_of(result.validation)}}},
      {"sources", sources}};
}

}  // namespace

// Everything goes to the staging folder, which replaces the output at the end.
TokenizeResult tokenize(const TokenizeOptions& options, const Progress& progress) {
  require_consistent(options);
  const auto files = list_input_files(options.inputs);
  StagingFolder staging(options.output);
  const auto tokenizer = prepare_tokenizer(options, files, staging.path(), progress);
  const auto open_split = [&](std::string_view split) {
    return SplitWriter(staging.path(), split, tokenizer.vocabulary(), tokenizer.eos(),
                       options.shard_tokens);
  };
  SplitWriter train = open_split(kTrainSplit);
  SplitWriter validation = open_split(kValidationSplit);

  Encoder encoder(tokenizer, options.threads, progress);
  // Progress counts bytes of the files as they lie on the disk: only these are known in advance.
  double total_bytes = 0, done_bytes = 0;
  for (const auto& file : files) total_bytes += static_cast<double>(file.bytes);
  for (const auto& file : files) {
    const auto what = "tokenizing " + file.path.filename().string();
    const auto file_bytes = static_cast<double>(file.bytes);
    for_each_piece(file, options.validation_fraction, [&](TextPiece piece) {
      const double share = (done_bytes + piece.file_share * file_bytes) / total_bytes;
      auto& split = piece.validation ? validation : train;
      encoder.add(std::move(piece), split, share, what);
    });
    done_bytes += file_bytes;
  }
  encoder.finish();

  const TokenizeResult result{tokenizer.vocabulary(), static_cast<int64_t>(files.size()),
                              train.finish(), validation.finish()};
  if (result.train.tokens == 0 ||
      (result.validation.tokens == 0 && options.validation_fraction > 0)) {
    throw DataError(fmt::format(
        "{}: too little text to keep {} of it for validation; add text, or choose another share",
        options.inputs.front(), options.validation_fraction));
  }
  // Last: whoever finds the folder finds a whole dataset.
  staging.commit(facts_of(result, options, tokenizer.eos(), files));
  return result;
}

}  // namespace farstep
