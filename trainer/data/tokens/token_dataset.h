// A dataset folder (docs/token_shards.md). Reads a split as one stream of tokens over all its
// shards.
//
// A const TokenDataset is thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/data_config.h"
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
struct TokenSource {
  std::filesystem::path folder;
  double weight = 1;  // of its windows in training, relative to the other folders'
  TokenDataset training;
  std::optional<TokenDataset> validation;  // nullopt if the folder has no shards of it

  // Throws DataError as TokenDataset does.
  explicit TokenSource(const DataFolder& named);
  // Returns the same 64-bit checksum where the shards are equal.
  uint64_t digest() const { return training.digest() ^ (validation ? validation->digest() : 0); }
};

// The tokens of a run: of one dataset folder, or of several that one tokenizer has made.
struct TokenData {
  // Throws DataError as TokenDataset does, and for folders of several tokenizers.
  explicit TokenData(const std::filesystem::path& folder);
  explicit TokenData(const std::vector<DataFolder>& folders);

  int64_t vocabulary() const { return sources.front().training.vocabulary(); }
  int64_t eos() const { return sources.front().training.eos(); }
  // Whether every folder has a validation split.
  bool validates() const;
  // Returns the same 64-bit checksum at sites with equal shards and weights.
  uint64_t digest() const;

  std::vector<TokenSource> sources;  // one at least
};

}  // namespace farstep
