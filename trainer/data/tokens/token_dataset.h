// A dataset folder (docs/token_shards.md). Reads a split as one stream of tokens over all its
// shards. Writes a new folder that appears complete or not at all.
//
// A const TokenDataset is thread-safe; one thread uses a writer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/data/tokens/shard_file.h"

namespace farstep {

inline constexpr std::string_view kTrainSplit = "train";
inline constexpr std::string_view kValidationSplit = "validation";
inline constexpr std::string_view kDatasetFile = "dataset.json";

// Returns the file name of a split's shard: "train-00000.tokens".
std::string shard_name(std::string_view split, int64_t index);

class TokenDataset {
 public:
  // Opens and verifies all shards of a split (train or validation). Throws DataError if there are
  // none, if one is missing or corrupt, or if they differ in vocabulary, eos or width.
  TokenDataset(const std::filesystem::path& folder, std::string_view split);

  // Whether `folder` has a shard of the split. Throws DataError if it cannot be read.
  static bool has_split(const std::filesystem::path& folder, std::string_view split);

  int64_t num_tokens() const { return ends_.back(); }
  int64_t vocabulary() const { return shards_.front().header().vocabulary; }
  int64_t eos() const { return shards_.front().header().eos; }
  // Returns a 64-bit checksum of all shards' headers, which contain the tokens' checksums. Two
  // sites have equal shards if it is equal.
  uint64_t digest() const;

  // Copies out.size() tokens from `offset` on, also across shards; all of them must exist.
  void read(int64_t offset, std::span<int64_t> out) const;

  // Returns the number of consecutive windows of sequence_length inputs, each with a target after
  // every input: floor((num_tokens - 1) / sequence_length). Throws DataError if it is 0.
  int64_t num_windows(int64_t sequence_length) const;

 private:
  std::string name_;  // for messages
  std::vector<ShardFile> shards_;
  std::vector<int64_t> ends_;  // of every shard, in tokens from the beginning of the stream
};

// Both splits of a dataset folder.
struct TokenData {
  // Throws DataError as TokenDataset does.
  explicit TokenData(const std::filesystem::path& folder);

  // Returns the same 64-bit checksum at sites with equal shards.
  uint64_t digest() const { return training.digest() ^ (validation ? validation->digest() : 0); }

  const TokenDataset training;
  std::optional<const TokenDataset> validation;  // nullopt if the folder has no shards of it
};

struct SplitFacts {
  int64_t documents = 0;
  int64_t bytes = 0;   // of text
  int64_t tokens = 0;  // eos included
  int64_t shards = 0;
};

// Writes the shards of one split, each with at most `shard_tokens` tokens.
class SplitWriter {
 public:
  SplitWriter(const std::filesystem::path& folder, std::string_view split, int64_t vocabulary,
              int64_t eos, int64_t shard_tokens);

  // Appends tokens, each in [0, vocabulary), for `bytes` bytes of text that contain the ends of
  // `documents` documents. Throws DataError if they cannot be written.
  void append(std::span<const int32_t> tokens, int64_t documents, int64_t bytes);
  // Completes the last shard and returns the facts of the split. Throws DataError.
  SplitFacts finish();

 private:
  std::filesystem::path folder_;
  std::string split_;
  int64_t vocabulary_, eos_, shard_tokens_;
  SplitFacts facts_;
  std::optional<ShardWriter> shard_;
};

// The temporary folder of a new dataset, beside its final place.
class StagingFolder {
 public:
  // Returns its path. A killed process leaves it there; the next one removes it.
  static std::filesystem::path path_for(const std::filesystem::path& output);

  // Throws ConfigError if `output` exists and is neither empty nor a dataset, as it would be
  // replaced.
  explicit StagingFolder(const std::filesystem::path& output);
  // Removes the folder if commit() was not called.
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return staging_; }
  // Writes `facts` as dataset.json, then replaces `output` and its old content by this folder.
  // Throws DataError.
  void commit(const Json& facts);

 private:
  std::filesystem::path output_, staging_;
};

}  // namespace farstep
