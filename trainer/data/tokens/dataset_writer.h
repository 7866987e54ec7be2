// Writes a dataset folder (docs/token_shards.md), which appears complete or not at all. What a
// process leaves unfinished another one can go on with.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/config/json_fields.h"
#include "trainer/data/tokens/shard_file.h"

namespace farstep {

struct SplitFacts {
  int64_t documents = 0;
  int64_t bytes = 0;   // of text
  int64_t tokens = 0;  // eos included
  int64_t shards = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("shards", shards, "files", at_least(0));
    visit("documents", documents, "whose end is in the split", at_least(0));
    visit("bytes", bytes, "of text", at_least(0));
    visit("tokens", tokens, "ids, eos included", at_least(0));
  }
};

// How far a split is written.
struct SplitPart {
  SplitFacts facts;
  std::optional<ShardPart> open_shard;  // the last one, if it has room for more

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("facts", facts, "what the split has so far", kRequired);
    visit("open_shard", open_shard, "the shard that is not full");
  }
};

// Writes the shards of one split, each with at most `shard_tokens` tokens.
class SplitWriter {
 public:
  SplitWriter(const std::filesystem::path& folder, std::string_view split, int64_t vocabulary,
              int64_t eos, int64_t shard_tokens);

  // Goes on after what another writer has saved in the folder; called before append(). Throws
  // DataError if the folder does not hold it.
  void go_on(const SplitPart& part);
  // Appends tokens, each in [0, vocabulary), for `bytes` bytes of text that contain the ends of
  // `documents` documents. Throws DataError if they cannot be written.
  void append(std::span<const int32_t> tokens, int64_t documents, int64_t bytes);
  // Flushes what is appended to the disk, and returns how far that is. The files stay when this
  // writer ends before finish(). Throws DataError.
  SplitPart save();
  // Completes the last shard and returns the facts of the split. Throws DataError.
  SplitFacts finish();

 private:
  std::filesystem::path folder_;
  std::string split_;
  int64_t vocabulary_, eos_, shard_tokens_;
  SplitFacts facts_;
  std::unique_ptr<ShardWriter> shard_;  // null: the next tokens begin one
};

// Throws ConfigError, saying what is there, if `output` is a dataset folder.
void require_no_dataset(const std::filesystem::path& output);

// The temporary folder of a new dataset, beside its final place. One process at a time has it.
class StagingFolder {
 public:
  // Returns its path.
  static std::filesystem::path path_for(const std::filesystem::path& output);

  // Makes the folder, or takes the one that a process has left, with all that is in it. Throws
  // ConfigError if `output` exists and is neither empty nor a dataset, as it would be replaced, or
  // if another process writes to the folder now.
  explicit StagingFolder(const std::filesystem::path& output);
  // Removes the folder unless commit() or keep() was called.
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return staging_; }
  // Removes all that is in the folder. Throws DataError.
  void clear();
  // Leaves the folder to a process that goes on with it.
  void keep() { is_kept_ = true; }
  // Writes `facts` as dataset.json, then replaces `output` and its old content by this folder.
  // Throws DataError.
  void commit(const Json& facts);

 private:
  std::filesystem::path output_, staging_;
  int lock_ = -1;  // descriptor of the folder
  bool is_kept_ = false;
};

}  // namespace farstep
