// A dataset folder (docs/token_shards.md): reading a split of it as one stream of tokens, however
// many shards hold it, and writing a new one so that it appears whole or not at all.
//
// TokenDataset is const and may be used concurrently; the writers belong to one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/data/shard_file.h"

namespace farstep {

inline constexpr std::string_view kTrainSplit = "train";
inline constexpr std::string_view kValidationSplit = "validation";
inline constexpr std::string_view kTokenizerFile = "tokenizer.model";
inline constexpr std::string_view kDatasetFile = "dataset.json";

// File name of a split's shard: "train-00000.tokens".
std::string shard_name(std::string_view split, int64_t index);

class TokenDataset {
 public:
  // Opens and verifies all shards of a split (train or validation). Throws DataError if there are
  // none, if one is missing or corrupt, or if they disagree on vocabulary, eos or width.
  TokenDataset(const std::filesystem::path& folder, std::string_view split);

  int64_t num_tokens() const { return ends_.back(); }
  int64_t vocabulary() const { return shards_.front().header().vocabulary; }
  int64_t eos() const { return shards_.front().header().eos; }
  // A number over all shards' headers: equal at two sites iff their shards are equal (up to the
  // strength of a 64-bit checksum).
  uint64_t digest() const;

  // Copies out.size() tokens from `offset` on, across shard borders; all of them must exist.
  void read(int64_t offset, std::span<int64_t> out) const;

  // Windows of sequence_length inputs (and the target after each) that follow each other in the
  // stream: floor((num_tokens - 1) / sequence_length). Throws DataError if there is not even one.
  int64_t num_windows(int64_t sequence_length) const;

 private:
  std::string name_;  // for messages
  std::vector<ShardFile> shards_;
  std::vector<int64_t> ends_;  // of every shard, in tokens of the stream
};

struct SplitFacts {
  int64_t documents = 0;
  int64_t bytes = 0;   // of text
  int64_t tokens = 0;  // eos included
  int64_t shards = 0;
};

// The shards of one split, each of at most `shard_tokens` tokens.
class SplitWriter {
 public:
  SplitWriter(const std::filesystem::path& folder, std::string_view split, int64_t vocabulary,
              int64_t eos, int64_t shard_tokens);

  // Appends tokens, each in [0, vocabulary), of `bytes` bytes of text in which `documents`
  // documents end. Throws DataError if they cannot be written.
  void append(std::span<const int32_t> tokens, int64_t documents, int64_t bytes);
  // Completes the last shard and returns what the split holds. Throws DataError.
  SplitFacts finish();

 private:
  std::filesystem::path folder_;
  std::string split_;
  int64_t vocabulary_, eos_, shard_tokens_;
  SplitFacts facts_;
  std::optional<ShardWriter> shard_;
};

// The folder of a new dataset, beside the place where it will stand.
class StagingFolder {
 public:
  // Throws ConfigError if `output` exists and is neither empty nor a dataset: it would be replaced.
  explicit StagingFolder(const std::filesystem::path& output);
  // Removes the folder if commit() was not reached.
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::filesystem::path& path() const { return staging_; }
  // Writes `facts` as dataset.json, then puts the folder in the place of `output`, old content
  // included. Throws DataError.
  void commit(const Json& facts);

 private:
  std::filesystem::path output_, staging_;
};

}  // namespace farstep
