#include "trainer/data/tokens/dataset_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/data/tokens/token_dataset.h"

namespace farstep {

namespace fs = std::filesystem;

namespace {

// "data/" and "data" name one folder, and ".partial" must not become a file inside it.
fs::path without_slash(const fs::path& folder) {
  return fs::absolute(folder / ".").lexically_normal().parent_path();
}

}  // namespace

SplitWriter::SplitWriter(const fs::path& folder, std::string_view split, int64_t vocabulary,
                         int64_t eos, int64_t shard_tokens)
    : folder_(folder),
      split_(split),
      vocabulary_(vocabulary),
      eos_(eos),
      shard_tokens_(shard_tokens) {}

// Files that the other writer began after it had saved are written again, with the same bytes.
void SplitWriter::go_on(const SplitPart& part) {
  facts_ = part.facts;
  const int64_t full = facts_.shards - (part.open_shard ? 1 : 0);
  int64_t tokens = part.open_shard ? part.open_shard->tokens : 0;
  for (int64_t i = 0; i < full; ++i) {
    tokens += ShardFile(folder_ / shard_name(split_, i)).num_tokens();
  }
  if (tokens != facts_.tokens) {
    throw DataError(fmt::format("{}: the {} shards have {} tokens, where {} were saved",
                                folder_.string(), split_, tokens, facts_.tokens));
  }
  if (part.open_shard) {
    shard_ = std::make_unique<ShardWriter>(folder_ / shard_name(split_, full), vocabulary_, eos_,
                                           *part.open_shard);
  }
}

// A document may cross shards: only the number of tokens ends a shard.
void SplitWriter::append(std::span<const int32_t> tokens, int64_t documents, int64_t bytes) {
  facts_.documents += documents;
  facts_.bytes += bytes;
  facts_.tokens += static_cast<int64_t>(tokens.size());
  while (!tokens.empty()) {
    if (!shard_) {
      shard_ = std::make_unique<ShardWriter>(folder_ / shard_name(split_, facts_.shards++),
                                             vocabulary_, eos_);
    }
    const auto room = static_cast<std::size_t>(shard_tokens_ - shard_->num_tokens());
    const auto piece = tokens.first(std::min(tokens.size(), room));
    shard_->append(piece);
    tokens = tokens.subspan(piece.size());
    if (shard_->num_tokens() == shard_tokens_) {
      shard_->finish();
      shard_.reset();
    }
  }
}

SplitPart SplitWriter::save() {
  return {facts_, shard_ ? std::optional(shard_->save()) : std::nullopt};
}

SplitFacts SplitWriter::finish() {
  if (shard_) shard_->finish();
  shard_.reset();
  return facts_;
}

// The absolute path without a last slash, so that ".partial" becomes part of the folder's name.
fs::path StagingFolder::path_for(const fs::path& output) {
  return without_slash(output) += ".partial";
}

void require_no_dataset(const fs::path& output) {
  const auto file = output / kDatasetFile;
  std::error_code none;
  if (!fs::exists(file, none)) return;
  std::string what;
  try {
    for (const auto split : {kTrainSplit, kValidationSplit}) {
      if (!TokenDataset::has_split(output, split)) continue;
      what += fmt::format("{} {} {} tokens", what.empty() ? " of" : " and",
                          TokenDataset(output, split).num_tokens(), split);
    }
  } catch (const DataError&) {
    what = ", a damaged one";
  }
  throw ConfigError(
      fmt::format("--output: {} is a dataset already{}: name another folder, or replace it with "
                  "--force",
                  output.string(), what));
}

StagingFolder::StagingFolder(const fs::path& output)
    : output_(without_slash(output)), staging_(path_for(output)) {
  std::error_code error;
  // A dataset may be replaced; anything else in that place is somebody's.
  // An empty folder is taken too: users make the output folder in advance.
  const bool taken = fs::exists(output_, error) && !fs::is_empty(output_, error);
  if (taken && !fs::exists(output_ / kDatasetFile, error)) {
    throw ConfigError(
        fmt::format("--output: {} is not a dataset folder and would be replaced; name another one",
                    output_.string()));
  }
  make_folder(staging_);
  // The kernel ends the lock with the process, however that ends. On a file system without locks
  // there is none, and the work goes on.
  lock_ = ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock_);
    throw ConfigError(fmt::format("--output: another process writes {} now; wait for it or end it",
                                  staging_.string()));
  }
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;  // a destructor cannot report an error; after commit() nothing is left
  if (!is_kept_) fs::remove_all(staging_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

// The folder itself stays, because the lock is on it.
void StagingFolder::clear() {
  for (const auto& entry : fs::directory_iterator(staging_)) remove_folder(entry.path());
}

void StagingFolder::commit(const Json& facts) {
  write_file_durably(staging_ / kDatasetFile, facts.dump(2) + "\n");
  sync_to_disk(staging_);
  replace_folder_durably(staging_, output_);
}

}  // namespace farstep
