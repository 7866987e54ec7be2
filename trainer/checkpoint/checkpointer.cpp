// Training pays for one copy of memory, not for the disk. The worker first copies what training
// would change next, then hashes, writes and flushes for as long as it takes. Only one checkpoint
// is under way at a time, so a slow disk delays the next one instead of piling up copies.
#include "trainer/checkpoint/checkpointer.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

class Folders : public CheckpointStore {
 public:
  Folders(std::filesystem::path root, int64_t keep) : root_(std::move(root)), keep_(keep) {}

  SavedCheckpoint save(const TrainState& state, const std::stop_token& stop) override {
    auto saved = save_checkpoint(root_, state, stop);
    // Older checkpoints go only when the new one is whole.
    prune_checkpoints(root_, keep_, state.pinned_rounds);
    return saved;
  }

 private:
  const std::filesystem::path root_;
  const int64_t keep_;
};

std::string hash_of(const NamedBuffers& buffers) {
  StreamingChecksum checksum;
  for (const auto& buffer : buffers) checksum.update(buffer.bytes);
  return checksum_text(checksum.value());
}

}  // namespace

std::unique_ptr<CheckpointStore> checkpoint_folders(std::filesystem::path root, int64_t keep) {
  return std::make_unique<Folders>(std::move(root), keep);
}

Checkpointer::Checkpointer(std::unique_ptr<CheckpointStore> store, double deadline_seconds)
    : store_(std::move(store)), deadline_seconds_(deadline_seconds) {}

Checkpointer::~Checkpointer() {
  end();
}

// The request is shared, because it must live until the worker has written it.
void Checkpointer::begin(CheckpointRequest request) {
  FARSTEP_CHECK(!is_under_way_, "a checkpoint is under way");
  const int64_t round = request.state.progress.round;
  auto shared = std::make_shared<CheckpointRequest>(std::move(request));
  auto saved = worker_.submit([this, shared, stop = give_up_.get_token()] {
    // First of all: training holds its next update until this copy is made.
    shared->copy();
    // Computed here and not by training: hashing all of theta_global takes as long as some steps.
    shared->state.progress.theta_hash = hash_of(shared->state.global);
    return store_->save(shared->state, stop);
  });
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline_seconds_);
  // wait_until_whole() comes from another thread.
  const std::lock_guard lock(mutex_);
  newest_ = Writing{.saved = saved.share(), .deadline = deadline, .round = round};
  is_under_way_ = true;
}

bool Checkpointer::is_under_way() const {
  return is_under_way_;
}

std::optional<SavedCheckpoint> Checkpointer::collect() {
  if (!is_under_way_) return std::nullopt;
  const auto writing = newest();
  if (writing->saved.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return std::nullopt;
  }
  return finish();
}

std::optional<SavedCheckpoint> Checkpointer::finish() {
  if (!std::exchange(is_under_way_, false)) return std::nullopt;
  return result_of(*newest());
}

void Checkpointer::end() {
  try {
    finish();
  } catch (const std::exception& error) {
    spdlog::error("the last checkpoint was not written: {}", error.what());
  }
  // After a missed deadline the store stops at its next piece; wait, because it still reads the
  // state.
  if (const auto writing = newest()) writing->saved.wait();
}

void Checkpointer::wait_until_whole() {
  if (const auto writing = newest()) result_of(*writing);
}

std::optional<Checkpointer::Writing> Checkpointer::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

// A missed deadline stops the store for good: a disk this slow would miss the next one too.
SavedCheckpoint Checkpointer::result_of(const Writing& writing) {
  if (writing.saved.wait_until(writing.deadline) != std::future_status::ready) {
    give_up_.request_stop();
    throw DataError(fmt::format(
        "the checkpoint of round {} is not on the disk after {} s "
        "(deadlines.checkpoint_seconds): give it more, or put `output` on a faster disk",
        writing.round, deadline_seconds_.count()));
  }
  return writing.saved.get();
}

}  // namespace farstep
