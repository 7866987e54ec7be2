// Reading, encoding and writing overlap: the reader hands pieces to many encoders while the tokens
// of earlier ones are written.
#include "trainer/data/tokens/encoding_queue.h"

#include <algorithm>
#include <utility>

#include "trainer/base/processor/usable_cores.h"

namespace farstep {

namespace {

constexpr int64_t kBatchBytes = 1 << 15;  // small documents share a task

}  // namespace

EncodingQueue::EncodingQueue(const Tokenizer& tokenizer, int64_t threads, const Encoded& written,
                             Progress progress)
    : tokenizer_(tokenizer), progress_(std::move(progress)), written_(written) {
  if (threads == 0) threads = usable_cores();
  while (std::ssize(workers_) < threads) workers_.push_back(std::make_unique<Worker>());
}

void EncodingQueue::add(TextPiece piece, SplitWriter& split, const InputPlace& end, double share,
                        const std::string& what) {
  // A batch belongs to one split, whose shards are written in order.
  if (batch_.split != &split) submit();
  batch_.split = &split;
  batch_.documents += piece.ends_document ? 1 : 0;
  batch_.bytes += static_cast<int64_t>(piece.text.size());
  batch_.end = end;
  batch_.share = share;
  batch_.what = what;
  batch_.pieces.push_back(std::move(piece));
  if (batch_.bytes >= kBatchBytes) submit();
}

void EncodingQueue::finish() {
  submit();
  while (!submitted_.empty()) write_oldest();
}

void EncodingQueue::submit() {
  if (batch_.pieces.empty()) return;
  // In turn: batches are of like size, so no common queue is needed.
  auto& worker = *workers_[num_submitted_++ % workers_.size()];
  batch_.tokens = worker.submit([this, pieces = std::move(batch_.pieces)] {
    std::vector<int32_t> tokens;
    for (const auto& piece : pieces) {
      tokenizer_.encode_part_opened(piece.text, piece.begins_document, tokens);
      if (piece.ends_document) tokens.push_back(tokenizer_.eos());
    }
    return tokens;
  });
  submitted_.push_back(std::exchange(batch_, {}));
  // Bounds the memory, because reading is faster than encoding.
  if (submitted_.size() > 4 * workers_.size()) write_oldest();
}

// Waits for the oldest batch, though a later one may be ready: the order of the pieces is the order
// of the tokens. An exception of a worker comes out here.
void EncodingQueue::write_oldest() {
  Batch batch = std::move(submitted_.front());
  submitted_.pop_front();
  const auto tokens = batch.tokens.get();
  batch.split->append(tokens, batch.documents, batch.bytes);
  written_.end = batch.end;
  written_.bytes += batch.bytes;
  written_.tokens += std::ssize(tokens);
  progress_(batch.share, batch.what, written_);
}

}  // namespace farstep
