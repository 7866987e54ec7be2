// The newest checkpoint decides alone: a site that was behind when the others ended has an older
// one.
#include "trainer/launch/finished_run.h"

#include <fmt/format.h>

#include <system_error>

#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/config/strict_json.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// Who resumes from the folder tells of the damage.
bool is_whole(const CheckpointEntry& entry) {
  try {
    verify_manifest(entry.folder);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

// Fills in what the run had when the checkpoint was written.
void take_saved_run(const CheckpointEntry& entry, FinishedRun& finished) {
  const auto saved = load_run_config(entry);
  try {
    finished.run = saved.at("name").get<std::string>();
    finished.rounds = saved.at("outer").at("rounds").get<int64_t>();
    finished.join_seconds = saved.at("deadlines").at("join_seconds").get<double>();
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: run.json: {}", entry.folder.string(), json_fault(error)));
  }
}

// The only coordinator removes its journal when it ends. If it was killed, a member may wait for
// its answer to the last sync, and gets it by the journal.
bool has_killed_coordinator(const SiteConfig& site) {
  const bool is_only = site.hosted_coordinator() && site.coordinators().size() == 1;
  std::error_code unknown;  // a start says why the journal cannot be reached
  return is_only && (fs::exists(site.coordinator.journal, unknown) || unknown);
}

}  // namespace

std::string FinishedRun::text() const {
  return fmt::format("run '{}' is finished: round {} of {}; the model is in {}", run, rounds_done,
                     rounds, checkpoint.string());
}

std::optional<FinishedRun> finished_run(const SiteConfig& site,
                                        const std::optional<RunConfig>& run) {
  const auto listed = list_checkpoints(site.folder() / kCheckpointsFolder);
  if (listed.empty()) return std::nullopt;
  const auto& newest = listed.front();
  // The name tells of most runs that they go on, before a file is read.
  if (run && newest.round < run->outer.rounds) return std::nullopt;
  if (!is_whole(newest)) return std::nullopt;
  FinishedRun finished{.rounds_done = newest.round, .checkpoint = newest.folder};
  if (run) {
    finished.run = run->name;
    finished.rounds = run->outer.rounds;
    finished.join_seconds = run->deadlines.join_seconds;
  } else {
    take_saved_run(newest, finished);
  }
  const auto progress = load_progress(newest);
  if (progress.run != finished.run || newest.round < finished.rounds) return std::nullopt;
  if (!run) {
    finished.doubt = "its config names no run file, and the run may have more rounds by now";
  } else if (progress.unvalidated_since) {
    finished.doubt = "its last validation was stopped";
  } else if (has_killed_coordinator(site)) {
    finished.doubt = "its coordinator was killed before the others had ended";
  }
  return finished;
}

}  // namespace farstep
