// One pass over all files, whose tokens go to the shards in their order. What is written is noted
// in the folder twice a second, so that another process can go on from there.
#include "trainer/data/tokens/tokenize.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokenizer/train_tokenizer.h"
#include "trainer/data/tokens/corpus.h"
#include "trainer/data/tokens/encoding_queue.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/data/tokens/token_file.h"
#include "trainer/data/tokens/tokenize_state.h"

namespace farstep {

namespace {

using Progress = std::function<void(const TokenizeProgress&)>;

void require_consistent(const TokenizeOptions& options) {
  if (options.inputs.empty()) throw ConfigError("name at least one text file or folder");
  if (options.output.empty()) throw ConfigError("--output: name the dataset folder to make");
  // Both or neither would leave open which vocabulary counts.
  if (options.tokenizer.empty() == (options.train_vocabulary == 0)) {
    throw ConfigError(
        "give either --tokenizer (a model to use) or --train-vocabulary (pieces to train)");
  }
  if (options.token_files && options.tokenizer.empty()) {
    throw ConfigError("--token-files: name the --tokenizer that made their ids");
  }
  if (!options.end_token.empty() && options.tokenizer.empty()) {
    throw ConfigError(
        "--end-token: a vocabulary that is trained has its own, </s>; leave this out");
  }
  if (options.special_tokens == SpecialTokens::kTokens && options.tokenizer.empty()) {
    throw ConfigError(
        "--special-tokens: a vocabulary that is trained has none in texts; leave this out");
  }
}

std::unique_ptr<const Tokenizer> given_tokenizer(const TokenizeOptions& options) {
  auto tokenizer = Tokenizer::load(options.tokenizer, options.end_token, options.special_tokens);
  const bool takes_names = options.special_tokens == SpecialTokens::kTokens;
  if (takes_names && !is_json(read_file(tokenizer_file(options.tokenizer)))) {
    throw ConfigError(fmt::format(
        "--special-tokens tokens: {} is a SentencePiece model, where names of special tokens are "
        "always text; take a tokenizer.json, or leave this out",
        tokenizer_file(options.tokenizer).string()));
  }
  return tokenizer;
}

// A token that ends documents and is made of text like others ends them wherever a text has it.
void warn_of_common_end(const TokenizeOptions& options, const Tokenizer& tokenizer) {
  if (options.end_token.empty() || options.special_tokens == SpecialTokens::kTokens) return;
  std::vector<int32_t> ids;
  try {
    ids = tokenizer.encode(options.end_token);
  } catch (const DataError&) {
    return;  // no text can have it
  }
  if (std::find(ids.begin(), ids.end(), tokenizer.eos()) == ids.end()) return;
  spdlog::warn(
      "the end token '{}' is a part of the vocabulary like others: where a text has it, a document "
      "ends",
      options.end_token);
}

// Puts the tokenizer into the dataset folder, so that it has all that decodes its tokens.
std::unique_ptr<const Tokenizer> prepare_tokenizer(const TokenizeOptions& options,
                                                   const std::vector<InputFile>& files,
                                                   const std::filesystem::path& folder,
                                                   const Progress& progress,
                                                   const std::stop_token& stop) {
  if (options.train_vocabulary > 0) {
    progress({.what = fmt::format("training a vocabulary of {} pieces", options.train_vocabulary),
              .trains = true});
    throw_if_stopped(stop);
    TrainingLines lines(files, options.text_field);
    const auto model = folder / kTokenizerFile;
    train_tokenizer([&] { return lines(); }, options.train_vocabulary, model);
    return Tokenizer::load(model);
  }
  // From the file that the user named, so that a message names it too.
  auto tokenizer = given_tokenizer(options);
  copy_tokenizer(options.tokenizer, folder, options.end_token);
  return tokenizer;
}

// Returns all that decides the dataset's bytes. A file counts as the same by its size and the time
// of its last change: to read all files would take much of the time of the work itself.
Json work_of(const TokenizeOptions& options, const std::vector<InputFile>& files) {
  Json inputs = Json::array(), tokenizer = Json::array();
  for (const auto& file : files) {
    inputs.push_back({file.path.string(), file.bytes, file.modified_ns});
  }
  if (!options.tokenizer.empty()) {
    for (const auto& file : tokenizer_files(options.tokenizer)) {
      const auto content = read_file(file);
      tokenizer.push_back(checksum_text(checksum(std::as_bytes(std::span(content)))));
    }
  }
  auto settings = to_json(options);
  for (const auto* name : {"inputs", "output", "tokenizer", "threads", "most_left_out"}) {
    settings.erase(name);
  }
  return {{"program", FARSTEP_VERSION},
          {"settings", settings},
          {"tokenizer", tokenizer},
          {"inputs", inputs}};
}

Json facts_of(const TokenizeResult& result, const TokenizeOptions& options,
              const Tokenizer& tokenizer, const std::vector<InputFile>& files) {
  Json sources = Json::array();
  for (const auto& file : files) {
    sources.push_back({{"path", file.path.string()}, {"bytes", file.bytes}});
  }
  return {{"format", 1},
          {"vocabulary", result.vocabulary},
          {"eos", tokenizer.eos()},
          {"token_bytes", token_bytes_for(result.vocabulary)},
          {"tokenizer_digest", checksum_text(tokenizer.digest())},
          {"validation_fraction", options.validation_fraction},
          {"skipped_documents", result.skipped},
          {"splits",
           {{kTrainSplit, to_json(result.train)}, {kValidationSplit, to_json(result.validation)}}},
          {"sources", sources}};
}

// Appends the ids of a token file. If its name says so, all of it validates. Otherwise the end of
// it does, by its share in all such ids, `before` of which come before. Returns how many of it
// count so.
int64_t copy_tokens(const InputFile& file, double validation_fraction, int64_t before,
                    const Tokenizer& tokenizer, SplitWriter& train, SplitWriter& validation) {
  constexpr std::size_t kMostTokens = std::size_t{1} << 20;
  TokenFile source(file.path);
  const auto count = source.num_tokens();
  const bool validates = TokenFile::validates(file.path);
  auto trained = validates ? 0 : count - validating(validation_fraction, before, count);
  std::vector<int32_t> ids;
  for (int64_t left = source.num_tokens(); left > 0; left -= std::ssize(ids)) {
    auto& split = trained > 0 ? train : validation;
    const auto most = static_cast<std::size_t>(trained > 0 ? trained : left);
    source.read(std::min(most, kMostTokens), tokenizer.vocabulary(), ids);
    split.append(ids, std::count(ids.begin(), ids.end(), tokenizer.eos()), 0);
    trained -= std::ssize(ids);
  }
  return validates ? 0 : count;
}

// Reads all files from where `encoder` is, and writes their tokens.
class Input {
 public:
  Input(const TokenizeOptions& options, const std::vector<InputFile>& files,
        const Tokenizer& tokenizer, const Progress& progress, const std::stop_token& stop)
      : options_(options), files_(files), tokenizer_(tokenizer), progress_(progress), stop_(stop) {
    for (const auto& file : files) {
      total_bytes_ += static_cast<double>(file.bytes);
      if (file.kind == FileKind::kText) text_bytes_ += file.bytes;
    }
  }

  // Returns the number of documents. Throws DataError; Stopped.
  int64_t read(EncodingQueue& encoder, DocumentFaults& faults, StateKeeper& keeper,
               SplitWriter& train, SplitWriter& validation) {
    const InputPlace begin = encoder.written().end;
    InputPlace done = begin;  // the files that are
    // Progress counts bytes of the files as they lie on the disk: only these are known in advance.
    double done_bytes = 0;
    for (int64_t i = 0; i < std::ssize(files_); ++i) {
      const auto& file = files_[static_cast<std::size_t>(i)];
      const auto what = file.path.filename().string();
      const auto file_bytes = static_cast<double>(file.bytes);
      const auto share = [&](double of_file) {
        return total_bytes_ == 0 ? 1 : (done_bytes + of_file * file_bytes) / total_bytes_;
      };
      const TextPlace from = i == begin.files ? begin.in_file : TextPlace{};
      if (i < begin.files) {
        done_bytes += file_bytes;
        continue;
      }
      if (i == begin.files) {  // later it is the writer that tells
        progress_({share(0), what, encoder.written().bytes, encoder.written().tokens});
      }
      if (file.kind == FileKind::kTokens) {
        encoder.finish();  // what came before comes before
        throw_if_stopped(stop_);
        done.tokens += copy_tokens(file, options_.validation_fraction, done.tokens, tokenizer_,
                                   train, validation);
        encoder.set_end(place(done, i + 1, {}, faults));
        keeper.save_if_due(encoder.written().end);
        progress_({share(1), what, encoder.written().bytes, encoder.written().tokens});
        done_bytes += file_bytes;
        continue;
      }
      const TextRules rules = {
          options_.validation_fraction,
          done.documents,
          text_bytes_,
          options_.text_field,
          [&](std::string_view text, std::size_t place) { return tokenizer_.may_cut(text, place); },
          [&](const Document& document) { faults.add(file.path, document); },
          stop_};
      const auto take = [&](TextPiece piece) {
        throw_if_stopped(stop_);
        if (faults.ended()) return;
        auto& split = piece.validation ? validation : train;
        const InputPlace end = place(done, i, piece.end, faults);
        const double share_done = share(piece.file_share);
        encoder.add(std::move(piece), split, end, share_done, what);
        keeper.save_if_due(encoder.written().end);
      };
      const auto documents = for_each_piece(file, rules, take, from);
      if (documents == 0) spdlog::warn("{}: has no text, and is left out", file.path.string());
      (is_cut(file, rules) ? done.cut_texts : done.documents) += documents;
      done_bytes += file_bytes;
    }
    const int64_t documents = done.documents + done.cut_texts;
    faults.finish(documents);
    encoder.finish();
    encoder.set_end(place(done, std::ssize(files_), {}, faults));
    return documents;
  }

 private:
  // A place in the file after `files` of them, whose counts are those of `done`.
  static InputPlace place(InputPlace done, int64_t files, const TextPlace& in_file,
                          const DocumentFaults& faults) {
    done.files = files;
    done.in_file = in_file;
    done.skipped = faults.count();
    return done;
  }

  const TokenizeOptions& options_;
  const std::vector<InputFile>& files_;
  const Tokenizer& tokenizer_;
  const Progress& progress_;
  const std::stop_token& stop_;
  double total_bytes_ = 0;
  int64_t text_bytes_ = 0;
};

}  // namespace

// Everything goes to the staging folder, which replaces the output at the end.
TokenizeResult tokenize(const TokenizeOptions& options, const Progress& progress,
                        const std::stop_token& stop) {
  require_consistent(options);
  if (!options.force) require_no_dataset(options.output);
  auto files = list_input_files(options.inputs);
  find_kinds(files, options.unknown_files, options.token_files);
  const auto work = work_of(options, files);
  StagingFolder staging(options.output);
  const auto unfinished = unfinished_state(staging.path(), work);
  if (!unfinished) staging.clear();
  // A vocabulary that was trained is not trained again.
  const auto tokenizer =
      unfinished && options.train_vocabulary > 0 ? Tokenizer::load(staging.path())
      : unfinished                               ? given_tokenizer(options)
                   : prepare_tokenizer(options, files, staging.path(), progress, stop);
  warn_of_common_end(options, *tokenizer);
  // That looked at the end token's own name, which no text has had yet.
  const auto names_before = tokenizer->names_left_as_text();
  const auto open_split = [&](std::string_view split) {
    return SplitWriter(staging.path(), split, tokenizer->vocabulary(), tokenizer->eos(),
                       options.shard_tokens);
  };
  SplitWriter train = open_split(kTrainSplit);
  SplitWriter validation = open_split(kValidationSplit);
  const auto before = unfinished.value_or(TokenizeState());
  if (unfinished) {
    train.go_on(before.train);
    validation.go_on(before.validation);
    spdlog::info("goes on with {}, after {} files and {} tokens", staging.path().string(),
                 before.done.files, before.train.facts.tokens + before.validation.facts.tokens);
  }

  StateKeeper keeper(staging.path(), work, train, validation);
  DocumentFaults faults(options.bad_text, before.done.skipped);
  EncodingQueue encoder(*tokenizer, options.threads,
                        {before.done, before.train.facts.bytes + before.validation.facts.bytes,
                         before.train.facts.tokens + before.validation.facts.tokens},
                        [&](double share, const std::string& what, const Encoded& encoded) {
                          progress({share, what, encoded.bytes, encoded.tokens});
                        });
  keeper.save(encoder.written().end);  // with the vocabulary, if one was trained
  const auto keep = [&] {
    keeper.save(encoder.written().end);
    staging.keep();
  };
  int64_t documents = 0;
  try {
    documents = Input(options, files, *tokenizer, progress, stop)
                    .read(encoder, faults, keeper, train, validation);
  } catch (const Stopped&) {
    keep();
    throw;
  }
  try {
    faults.require_few(documents, options.most_left_out);
  } catch (const DataError&) {
    keep();
    throw;
  }

  if (const auto names = tokenizer->names_left_as_text() - names_before; names > 0) {
    spdlog::warn(
        "names of special tokens, as the end token's, are text like any other in {} places; "
        "--special-tokens tokens makes tokens of them, if you trust the texts",
        names);
  }
  const TokenizeResult result{tokenizer->vocabulary(), static_cast<int64_t>(files.size()),
                              faults.count(), train.finish(), validation.finish()};
  if (result.train.tokens == 0 ||
      (result.validation.tokens == 0 && options.validation_fraction > 0)) {
    throw DataError(fmt::format(
        "{}: too little text to train on and to keep {} of it for validation: {} in it; add "
        "text, or keep none with --validation-fraction 0",
        options.inputs.front(), options.validation_fraction,
        documents == 1 ? "there is one document"
                       : fmt::format("there are {} documents", documents)));
  }
  keeper.finish();
  // Last: whoever finds the folder finds a whole dataset.
  staging.commit(facts_of(result, options, *tokenizer, files));
  return result;
}

}  // namespace farstep
