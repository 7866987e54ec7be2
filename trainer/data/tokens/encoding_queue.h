// Encodes pieces of text on many threads, and appends their tokens to the splits in order of the
// pieces. So the shards have the same bytes for any number of threads.
//
// One thread uses an EncodingQueue.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/worker.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokens/corpus.h"
#include "trainer/data/tokens/dataset_writer.h"

namespace farstep {

// What is read up to a place of the input.
struct InputPlace {
  int64_t files = 0;      // that are done
  TextPlace in_file;      // in the file that follows
  int64_t skipped = 0;    // documents with a fault before it
  int64_t documents = 0;  // of the files that are done, without texts that are cut
  int64_t cut_texts = 0;  // of them
  int64_t tokens = 0;     // of them, of files of tokens

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("files", files, "files that are done", at_least(0));
    visit("in_file", in_file, "place in the next one");
    visit("skipped", skipped, "documents that were left out", at_least(0));
    visit("documents", documents, "their documents, without texts that are cut", at_least(0));
    visit("cut_texts", cut_texts, "their texts that are cut", at_least(0));
    visit("tokens", tokens, "ids of their token files", at_least(0));
  }
};

// What is encoded and written.
struct Encoded {
  InputPlace end;
  int64_t bytes = 0, tokens = 0;  // of text
};

class EncodingQueue {
 public:
  // Hears of every write: the share of the input and the name that came with the last piece.
  using Progress =
      std::function<void(double share, const std::string& what, const Encoded& written)>;

  // `written` was done before. The tokenizer must outlive this. 0 threads: one a core.
  EncodingQueue(const Tokenizer& tokenizer, int64_t threads, const Encoded& written,
                Progress progress);

  // Adds the next piece of the text of `split`, which ends at `end`. Calls `progress` with `share`
  // and `what` when it is written. Throws DataError for what cannot be encoded or written.
  void add(TextPiece piece, SplitWriter& split, const InputPlace& end, double share,
           const std::string& what);
  // Encodes and writes the remaining pieces. Throws DataError.
  void finish();

  const Encoded& written() const { return written_; }
  // Says that all up to `end` is written, after finish().
  void set_end(const InputPlace& end) { written_.end = end; }

 private:
  struct Batch {
    std::vector<TextPiece> pieces;
    SplitWriter* split = nullptr;
    int64_t documents = 0, bytes = 0;
    InputPlace end;
    double share = 0;
    std::string what;
    std::future<std::vector<int32_t>> tokens;
  };

  void submit();
  void write_oldest();

  const Tokenizer& tokenizer_;
  const Progress progress_;
  Encoded written_;
  Batch batch_;  // not yet submitted
  std::deque<Batch> submitted_;
  std::size_t num_submitted_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;  // the last member: their tasks use the others
};

}  // namespace farstep
