// The parts of a site that need no peers: its folder, records and clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/inner/cores.h"
#include "trainer/settings/load_config.h"
#include "trainer/telemetry/recorder.h"
#include "wan/protocol/protocol.h"

namespace farstep {

inline constexpr std::string_view kLogFile = "log.txt";  // in the site's folder

// How a process of a site begins.
struct ResumeWish {
  wan::Resume how = wan::Resume::kNever;
  std::optional<int64_t> from_round = {};  // nullopt: from the newest that all sites have
};

struct SiteGround {
  // Makes the site's folder, and writes the log there from now on. Throws ConfigError or DataError.
  // A folder that already holds a run is a ConfigError if the site never resumes.
  SiteGround(const LoadedSite& loaded, const ResumeWish& wanted);
  SiteGround(const SiteGround&) = delete;

  std::filesystem::path checkpoint_root() const { return output / kCheckpointsFolder; }
  // Returns the site's request to join the run with data of that digest; nullopt: it has none.
  // Throws ConfigError if the checkpoints are of another run than the site's run file, DataError if
  // the site is to resume from a round of which it has no checkpoint.
  wan::JoinRequest join_request(const LoadedSite& loaded,
                                std::optional<uint64_t> data_digest) const;
  // Returns the newest checkpoint after `syncs` syncs, from which all sites resume. Returns nullopt
  // if this site never resumes, or has none and begins anew, which it can before the first sync.
  // Throws DataError.
  std::optional<CheckpointEntry> checkpoint_after(int64_t syncs) const;

  // Throws ConfigError if this checkpoint's progress is of a run of another name.
  void require_of_run(const TrainProgress& progress, const std::string& run) const;

  // Returns the newest checkpoint; nullopt if there is none, or this site never resumes.
  std::optional<CheckpointEntry> newest_checkpoint() const;

  // Returns what the records call each device.
  std::vector<std::string> device_texts() const;

  const SiteConfig site;               // without devices: with one thread of the processor
  const std::vector<Cores> cores;      // by device
  const std::filesystem::path output;  // the site's own folder
  const ResumeWish resume;             // kAuto only without any checkpoint
  RealClock clock;
  Recorder recorder;

 private:
  // Returns the whole checkpoints from which this site may resume, newest first.
  std::vector<CheckpointEntry> offered() const;
};

}  // namespace farstep
