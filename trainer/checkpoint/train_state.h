// All that a site needs to go on as if it had never stopped, and its checkpoint on the disk.
//
// The folder of one checkpoint (docs/checkpoints.md): model.safetensors and config.json, which are
// theta_global as a Hugging Face folder; outer.safetensors; site.safetensors; state.json; run.json;
// manifest.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/base/named_buffers.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// Where a site stands in its run.
struct TrainProgress {
  std::string run;
  std::string site;
  int64_t round = 0;
  int64_t step = 0;
  int64_t syncs = 0;
  double loss_sum = 0;
  int64_t run_sequences = 0;
  int64_t site_sequences = 0;
  int64_t generation = 0;
  std::string theta_hash;
  double round_seconds = 0;
  Json planner = {};
  Json strategy = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "name of the run", kRequired);
    visit("site", site, "name of the site", kRequired);
    visit("round", round, "outer rounds done", required(at_least(0)));
    visit("step", step, "inner steps done of the round after them", required(at_least(0)));
    visit("syncs", syncs, "syncs that all sites have done, one a fragment and round",
          required(at_least(0)));
    visit("loss_sum", loss_sum, "sum of the losses of `step`'s inner steps", kRequired);
    visit("run_sequences", run_sequences, "sequences that all sites took in the rounds done",
          required(at_least(0)));
    visit("site_sequences", site_sequences, "sequences that this site took in the rounds done",
          required(at_least(0)));
    visit("generation", generation, "version of the membership", required(at_least(0)));
    visit("theta_hash", theta_hash, "checksum of theta_global, 16 hexadecimal digits", kRequired);
    visit("round_seconds", round_seconds, "time spent in the round after them", at_least(0));
    visit("planner", planner, "what the planner has learned of the sites");
    visit("strategy", strategy, "how far the round's syncs have come");
  }
};

struct TrainState {
  TrainProgress progress;
  NamedBuffers global;       // theta_global after progress.syncs syncs, under Hugging Face names
  NamedBuffers outer;        // momentum of the outer optimizer
  NamedBuffers site;         // the site's own: inner moments, theta_local, what is not sent yet
  Json run_config;           // the resolved run config
  std::string model_config;  // config.json of the model
};

struct SavedCheckpoint {
  CheckpointEntry entry;
  int64_t bytes = 0;  // of all files that the manifest lists
};

// Writes the state as the checkpoint of its (round, step) below `root`, so that a crash at any
// moment leaves the checkpoints that were there. Throws DataError, e.g. when the disk is full.
SavedCheckpoint save_checkpoint(const std::filesystem::path& root, const TrainState& state);

// Where the site stood when it made the checkpoint. Throws DataError, also if another version of
// Farstep made it.
TrainProgress load_progress(const CheckpointEntry& entry);

// Reads progress, run_config and model_config, and fills the buffers that `into` lists, which must
// be the ones that were saved. Throws DataError if names, dtypes or shapes differ or a file is
// malformed; the manifest is resumable_checkpoints' to verify.
void load_checkpoint(const CheckpointEntry& entry, TrainState& into);

}  // namespace farstep
