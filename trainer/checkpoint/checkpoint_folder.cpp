// A checkpoint has its name only when it is whole: it is written under another name and renamed at
// the end. So a crash at any moment leaves older checkpoints, and at most a partial one that the
// next checkpoint removes.
#include "trainer/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include <spdlog/spdlog.h>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/checkpoint/manifest.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRound = "round-";
constexpr std::string_view kStep = "-step-";
constexpr std::string_view kPartial = ".partial";

// Padded numbers, so that folders sort by time in every listing.
std::string checkpoint_name(int64_t round, int64_t step) {
  return step == 0 ? fmt::format("{}{:05}", kRound, round)
                   : fmt::format("{}{:05}{}{:05}", kRound, round, kStep, step);
}

// Returns the entry of a folder whose name comes from checkpoint_name(), else nullopt.
std::optional<CheckpointEntry> entry_of(const fs::path& folder) {
  const auto name = folder.filename().string();
  CheckpointEntry entry{folder, 0, 0};
  if (!name.starts_with(kRound)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const char* place = std::from_chars(name.data() + kRound.size(), end, entry.round).ptr;
  if (std::string_view(place, end).starts_with(kStep)) {
    std::from_chars(place + kStep.size(), end, entry.step);
  }
  // Another spelling of the same numbers, such as round-1, is not ours.
  if (entry.round < 0 || entry.step < 0 || name != checkpoint_name(entry.round, entry.step)) {
    return std::nullopt;
  }
  return entry;
}

std::vector<fs::path> folders_below(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  if (fs::status(root, error).type() == fs::file_type::not_found) return folders;
  fs::directory_iterator iterator(root, error);
  for (; !error && iterator != fs::directory_iterator(); iterator.increment(error)) {
    std::error_code unknown;  // an entry that cannot be inspected is not a folder
    if (iterator->is_directory(unknown)) folders.push_back(iterator->path());
  }
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", root.string(), error.message()));
  return folders;
}

fs::path partial_of(fs::path folder) {
  return folder += kPartial;
}

// Returns a name that nothing has: the run may have gone back before, and what was left then stays.
fs::path unused_left(const fs::path& folder) {
  fs::path left = folder.string() + ".left";
  std::error_code unknown;  // ignored: the rename fails too, and reports why
  for (int number = 2; fs::exists(left, unknown); ++number) {
    left = fmt::format("{}.left-{}", folder.string(), number);
  }
  return left;
}

// Renames before deleting, so that a crash leaves no incomplete folder with a checkpoint's name.
void discard(const CheckpointEntry& entry) {
  const auto rubbish = partial_of(entry.folder);
  remove_folder(rubbish);
  rename_durably(entry.folder, rubbish);
  remove_folder(rubbish);
}

}  // namespace

fs::path begin_checkpoint(const fs::path& root, int64_t round, int64_t step) {
  // Folders of checkpoints that were interrupted. They are large and never resumed from.
  make_folder(root);
  for (const auto& folder : folders_below(root)) {
    if (folder.filename().string().starts_with(kRound) && folder.extension() == kPartial) {
      remove_folder(folder);
    }
  }
  const auto partial = partial_of(root / checkpoint_name(round, step));
  make_folder(partial);
  return partial;
}

// The files are flushed already; the folder's entries are flushed before its name appears.
CheckpointEntry publish_checkpoint(const fs::path& partial) {
  const auto entry = entry_of(fs::path(partial).replace_extension());
  FARSTEP_CHECK(entry.has_value(), "{} is not from begin_checkpoint", partial.string());
  sync_to_disk(partial);
  replace_folder_durably(partial, entry->folder);
  return *entry;
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& root) {
  std::vector<CheckpointEntry> entries;
  for (const auto& folder : folders_below(root)) {
    if (auto entry = entry_of(folder)) entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.round, a.step) > std::tie(b.round, b.step);
  });
  return entries;
}

// A damaged checkpoint must not end the run as long as an older one is whole.
std::vector<CheckpointEntry> resumable_checkpoints(const fs::path& root) {
  std::vector<CheckpointEntry> resumable;
  for (const auto& entry : list_checkpoints(root)) {
    try {
      verify_manifest(entry.folder);
      resumable.push_back(entry);
    } catch (const DataError& error) {
      spdlog::warn("checkpoint {} is damaged and skipped: {}", entry.folder.filename().string(),
                   error.what());
    }
  }
  return resumable;
}

// Entries come newest first, so the first `keep` different rounds stay.
void prune_checkpoints(const fs::path& root, int64_t keep, std::span<const int64_t> pinned) {
  FARSTEP_CHECK(keep >= 1, "keep is {}", keep);
  std::set<int64_t> kept_rounds;
  for (const auto& entry : list_checkpoints(root)) {
    const bool is_old = std::ssize(kept_rounds) == keep && !kept_rounds.contains(entry.round);
    const bool is_pinned = entry.step == 0 && std::ranges::count(pinned, entry.round) > 0;
    if (is_old && !is_pinned) discard(entry);
    if (std::ssize(kept_rounds) < keep) kept_rounds.insert(entry.round);
  }
}

void drop_newer_checkpoints(const fs::path& root, const CheckpointEntry& resumed) {
  for (const auto& entry : list_checkpoints(root)) {
    if (std::tie(entry.round, entry.step) > std::tie(resumed.round, resumed.step)) discard(entry);
  }
}

// Not removed: it may be the only copy of work that the user wants back.
void set_aside_checkpoints_after(const fs::path& root, int64_t round) {
  for (const auto& entry : list_checkpoints(root)) {
    if (entry.round <= round) continue;
    const auto left = unused_left(entry.folder);
    rename_durably(entry.folder, left);
    spdlog::warn(
        "the run goes on from round {}: this site's checkpoint {} is no part of it, and is {} now",
        round, entry.folder.filename().string(), left.string());
  }
}

}  // namespace farstep
