// The checkpoint folders below one root: how they are named, appear, are checked and go.
//
// A checkpoint appears by one rename of a folder that is whole and flushed, and goes by one rename
// before its files do; so whatever the moment of a crash, a folder with a checkpoint's name is
// whole, or the disk damaged it, which its manifest shows. Folders ending in .partial are rubbish.
// Not thread-safe: one process has one root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace farstep {

struct CheckpointEntry {
  std::filesystem::path folder;
  int64_t round = 0;  // outer rounds done
  int64_t step = 0;   // inner steps done of the round after them
};

// Removes what interrupted saves left below `root`, and makes an empty folder
// root/round-00010.partial, or root/round-00010-step-00037.partial where `step` is not 0. Returns
// it. Throws DataError.
std::filesystem::path begin_checkpoint(const std::filesystem::path& root, int64_t round,
                                       int64_t step);

// Flushes the folder that begin_checkpoint made and drops its .partial; a checkpoint of that name
// is replaced. Throws DataError.
CheckpointEntry publish_checkpoint(const std::filesystem::path& partial);

// The checkpoints below `root` by name, newest first by (round, step); none if there is no such
// folder. Throws DataError if it cannot be read.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& root);

// What a site can resume from: the checkpoints that agree with their manifests, newest first by
// (round, step). A damaged one is skipped with a warning that names file and reason.
std::vector<CheckpointEntry> resumable_checkpoints(const std::filesystem::path& root);

// Removes all but those of the newest `keep` rounds. Rounds count, not folders: a checkpoint made
// in mid-round must not push out the round that a lost peer can still resume from. Throws
// DataError.
void prune_checkpoints(const std::filesystem::path& root, int64_t keep);

// Removes all that are newer than `resumed`, so that a run that went back does not meet the rounds
// it left behind. Throws DataError.
void drop_newer_checkpoints(const std::filesystem::path& root, const CheckpointEntry& resumed);

}  // namespace farstep
