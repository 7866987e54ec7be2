// Writes checkpoints during training: one at a time, on a thread of its own.
//
// begin() takes a state whose buffers stay in place. Buffers that training changes at every step
// are copied first, by the request's copy(). The others are written from their place, and a thread
// that changes them waits first: the training thread by finish(), another by wait_until_whole(). A
// site waits in the same way before it lets the other sites continue without its checkpoint.
//
// The training thread calls all methods but wait_until_whole().
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "trainer/base/worker.h"
#include "trainer/checkpoint/train_state.h"

namespace farstep {

// The place of checkpoints. The checkpointer's thread calls it.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // Returns when the checkpoint is complete and durable. Throws DataError if it fails, or once
  // `stop` is requested.
  virtual SavedCheckpoint save(const TrainState& state, const std::stop_token& stop) = 0;
};

// Returns a store of folders in `root`, which keeps those of the newest `keep` rounds, and of a
// state's pinned rounds.
std::unique_ptr<CheckpointStore> checkpoint_folders(std::filesystem::path root, int64_t keep);

// A checkpoint to write.
struct CheckpointRequest {
  TrainState state;                    // without progress.theta_hash, which is computed of `global`
  std::function<void()> copy = [] {};  // fills the buffers of `state` that are copies
};

class Checkpointer {
 public:
  // A checkpoint must be complete after `deadline_seconds`.
  Checkpointer(std::unique_ptr<CheckpointStore> store, double deadline_seconds);
  // Calls end().
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Begins to write a checkpoint and returns at once. No other may be under way.
  void begin(CheckpointRequest request);

  // Whether there is a checkpoint that neither collect() nor finish() has returned.
  bool is_under_way() const;
  // Returns the checkpoint under way if it is complete, else nullopt. Throws if writing failed.
  std::optional<SavedCheckpoint> collect();
  // Waits for the checkpoint under way; returns nullopt if there is none. Throws if writing failed,
  // and DataError at its deadline, which also ends the writing.
  std::optional<SavedCheckpoint> finish();

  // Calls finish(), and logs an exception. Afterwards no thread reads the state of any request.
  void end();

  // Waits until the checkpoint begun last is complete; returns at once if there is none. Throws as
  // finish() does, until the next begin(). Any thread may call it.
  void wait_until_whole();

 private:
  // The newest checkpoint.
  struct Writing {
    std::shared_future<SavedCheckpoint> saved;
    std::chrono::steady_clock::time_point deadline;
    int64_t round = 0;
  };

  std::optional<Writing> newest() const;
  SavedCheckpoint result_of(const Writing& writing);

  const std::unique_ptr<CheckpointStore> store_;
  const std::chrono::duration<double> deadline_seconds_;
  std::stop_source give_up_;
  bool is_under_way_ = false;
  mutable std::mutex mutex_;
  std::optional<Writing> newest_;  // guarded by mutex_
  Worker worker_;                  // the last member: its tasks use the others
};

}  // namespace farstep
