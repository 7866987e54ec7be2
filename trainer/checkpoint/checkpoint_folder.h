// The checkpoint folders in one root: their names, creation, verification and removal.
//
// A checkpoint appears by one rename of a complete, flushed folder. It is removed by a rename
// before its files are deleted. So after a crash at any moment, a folder with a checkpoint's name
// is complete, or the disk damaged it and its manifest shows that. Folders ending in .partial are
// garbage. Not thread-safe; one process uses a root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace farstep {

inline constexpr std::string_view kCheckpointsFolder =
    "checkpoints";  // the root, in a site's folder

struct CheckpointEntry {
  std::filesystem::path folder;
  int64_t round = 0;  // outer rounds done
  int64_t step = 0;   // inner steps done of the round after them
};

// Removes the remains of interrupted saves in `root` and creates an empty folder
// root/round-00010.partial, or root/round-00010-step-00037.partial if `step` is not 0. Returns the
// folder. Throws DataError.
std::filesystem::path begin_checkpoint(const std::filesystem::path& root, int64_t round,
                                       int64_t step);

// Flushes the folder from begin_checkpoint() and removes .partial from its name. Replaces a
// checkpoint of that name. Throws DataError.
CheckpointEntry publish_checkpoint(const std::filesystem::path& partial);

// Returns the checkpoints in `root` by their names, newest first by (round, step); empty if there
// is no such folder. Throws DataError if it cannot be read.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& root);

// Returns the checkpoints from which a site can resume: those that agree with their manifests,
// newest first by (round, step). Skips a damaged one with a warning that names file and reason.
std::vector<CheckpointEntry> resumable_checkpoints(const std::filesystem::path& root);

// Removes all checkpoints except those of the newest `keep` rounds, and those after `pinned`
// rounds. It counts rounds, not folders: a checkpoint in mid-round must not displace a round from
// which a lost peer can still resume. Throws DataError.
void prune_checkpoints(const std::filesystem::path& root, int64_t keep,
                       std::span<const int64_t> pinned = {});

// Removes all checkpoints newer than `resumed`, so that a run that went back does not find its
// abandoned rounds. Throws DataError.
void drop_newer_checkpoints(const std::filesystem::path& root, const CheckpointEntry& resumed);

// Renames all checkpoints of later rounds than `round` to NAME.left, or to NAME.left-2 and so on if
// that is there, with a warning: the run went on from that round without them. Nothing finds them
// any more. Throws DataError.
void set_aside_checkpoints_after(const std::filesystem::path& root, int64_t round);

}  // namespace farstep
