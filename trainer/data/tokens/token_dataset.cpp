// The shards of a split are one long sequence of tokens. Windows and documents may cross the border
// of two shards, so cutting into shards changes nothing in training.
#include "trainer/data/tokens/token_dataset.h"

#include <algorithm>
#include <bit>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kShardSuffix = ".tokens";

// Returns the split's shards in no order.
std::vector<fs::path> shards_of(const fs::path& folder, std::string_view split) {
  std::error_code error;
  if (fs::is_regular_file(folder, error)) {
    throw DataError(
        fmt::format("{0}: a file, not a dataset folder; `farstep tokenize {0} --output FOLDER` "
                    "makes one of its "
                    "text, and `data` names that",
                    folder.string()));
  }
  fs::directory_iterator entries(folder, error);
  if (error) {
    throw DataError(
        fmt::format("{}: no dataset folder ({}); `farstep tokenize TEXT --output {}` "
                    "makes it",
                    folder.string(), error.message(), folder.string()));
  }
  std::vector<fs::path> shards;
  const std::string prefix = std::string(split) + "-";
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(kShardSuffix)) shards.push_back(entry.path());
  }
  return shards;
}

// Returns the split's shards in order of their names, which is that of their numbers.
std::vector<fs::path> find_shards(const fs::path& folder, std::string_view split) {
  auto shards = shards_of(folder, split);
  if (shards.empty()) {
    throw DataError(fmt::format("{}: no {} shards; `farstep tokenize TEXT --output {}` makes them",
                                folder.string(), split, folder.string()));
  }
  std::sort(shards.begin(), shards.end());
  // A shard that was not copied would shift all windows after it.
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto expected = shard_name(split, static_cast<int64_t>(i));
    if (shards[i].filename() != expected) {
      throw DataError(fmt::format("{}: {} is missing; copy or make the dataset again",
                                  folder.string(), expected));
    }
  }
  return shards;
}

// A folder with shards of two tokenizers would train on tokens of other meanings without any error.
void require_same_kind(const ShardFile& first, const ShardFile& shard) {
  const auto& a = first.header();
  const auto& b = shard.header();
  if (a.vocabulary != b.vocabulary || a.eos != b.eos || a.token_bytes != b.token_bytes) {
    throw DataError(
        fmt::format("{}: byte 0: vocabulary {}, eos {}, width {} differ from the {}, {}, {} of {}",
                    shard.path().string(), b.vocabulary, b.eos, b.token_bytes, a.vocabulary, a.eos,
                    a.token_bytes, first.path().filename().string()));
  }
}

// Two vocabularies of one size pass the shards' own check.
void require_same_tokenizer(const TokenSource& first, const TokenSource& source) {
  const auto refuse = [&](const std::string& what) {
    throw DataError(
        fmt::format("{}: was not made by the tokenizer of {}: {}; tokenize both with one",
                    source.folder.string(), first.folder.string(), what));
  };
  const auto& a = first.training;
  const auto& b = source.training;
  if (a.vocabulary() != b.vocabulary() || a.eos() != b.eos()) {
    refuse(fmt::format("vocabulary {} and eos {} here, {} and {} there", b.vocabulary(), b.eos(),
                       a.vocabulary(), a.eos()));
  }
  if (!has_tokenizer(first.folder) || !has_tokenizer(source.folder)) return;
  if (read_file(tokenizer_file(first.folder)) != read_file(tokenizer_file(source.folder))) {
    refuse("the files of the tokenizers differ");
  }
}

}  // namespace

std::string shard_name(std::string_view split, int64_t index) {
  return fmt::format("{}-{:05}{}", split, index, kShardSuffix);
}

TokenDataset::TokenDataset(const fs::path& folder, std::string_view split)
    : name_(fmt::format("{} ({})", folder.string(), split)) {
  for (const auto& path : find_shards(folder, split)) {
    const auto& shard = shards_.emplace_back(path);
    require_same_kind(shards_.front(), shard);
    // At every start, which reads the whole data once: a corrupt file must not train a model for
    // days.
    shard.verify();
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + shard.num_tokens());
  }
}

// Lets a validation split be left out on purpose; a shard that is missing in the middle stays an
// error.
bool TokenDataset::has_split(const fs::path& folder, std::string_view split) {
  return !shards_of(folder, split).empty();
}

// Headers suffice, as each has the checksum of its tokens.
uint64_t TokenDataset::digest() const {
  StreamingChecksum sum;
  for (const auto& shard : shards_) {
    const auto& header = shard.header();
    const uint64_t facts[] = {static_cast<uint64_t>(header.token_bytes),
                              static_cast<uint64_t>(header.vocabulary),
                              static_cast<uint64_t>(header.eos),
                              static_cast<uint64_t>(header.num_tokens), header.payload_checksum};
    sum.update(std::as_bytes(std::span(facts)));
  }
  return sum.value();
}

// Finds the first shard by bisection; the tokens may extend over several shards.
void TokenDataset::read(int64_t offset, std::span<int64_t> out) const {
  FARSTEP_CHECK(offset >= 0 && static_cast<int64_t>(out.size()) <= num_tokens() - offset,
                "{} tokens from {} on of {}", out.size(), offset, name_);
  auto shard = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) -
                                        ends_.begin());
  while (!out.empty()) {
    const int64_t start = shard == 0 ? 0 : ends_[shard - 1];
    const auto piece =
        out.first(std::min(out.size(), static_cast<std::size_t>(ends_[shard] - offset)));
    shards_[shard].read(offset - start, piece);
    offset += static_cast<int64_t>(piece.size());
    out = out.subspan(piece.size());
    ++shard;
  }
}

int64_t TokenDataset::num_windows(int64_t sequence_length) const {
  FARSTEP_CHECK(sequence_length >= 1, "sequence length {}", sequence_length);
  // One token more than the inputs: the target of the last one.
  const int64_t windows = (num_tokens() - 1) / sequence_length;
  if (windows == 0) {
    throw DataError(fmt::format(
        "{}: {} tokens are too few for one sequence of {} and its last target: tokenize more text, "
        "or take shorter sequences (data.sequence_length of a run, --sequence-length of `farstep "
        "evaluate`)",
        name_, num_tokens(), sequence_length));
  }
  return windows;
}

TokenSource::TokenSource(const DataFolder& named)
    : folder(named.folder), weight(named.weight), training(named.folder, kTrainSplit) {
  if (TokenDataset::has_split(folder, kValidationSplit)) {
    validation.emplace(folder, kValidationSplit);
  }
}

TokenData::TokenData(const fs::path& folder)
    : TokenData(std::vector<DataFolder>{{.folder = folder.string()}}) {}

TokenData::TokenData(const std::vector<DataFolder>& folders) {
  FARSTEP_CHECK(!folders.empty(), "no folder of tokens");
  for (const auto& folder : folders) {
    const auto& source = sources.emplace_back(folder);
    require_same_tokenizer(sources.front(), source);
  }
}

bool TokenData::validates() const {
  return std::ranges::all_of(sources,
                             [](const auto& source) { return source.validation.has_value(); });
}

// Weights count by their parts of the sum: 3 and 7 are 0.3 and 0.7.
uint64_t TokenData::digest() const {
  if (sources.size() == 1) return sources.front().digest();
  double sum = 0;
  for (const auto& source : sources) sum += source.weight;
  StreamingChecksum all;
  for (const auto& source : sources) {
    const uint64_t facts[] = {source.digest(), std::bit_cast<uint64_t>(source.weight / sum)};
    all.update(std::as_bytes(std::span(facts)));
  }
  return all.value();
}

}  // namespace farstep
