// The state that a site needs to continue as if it had never stopped, and its checkpoint on disk.
//
// The folder of a checkpoint (docs/checkpoints.md) has model.safetensors and config.json, which are
// theta_global as a Hugging Face folder, with the tokenizer's files; outer.safetensors;
// site.safetensors; state.json; run.json; manifest.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "trainer/base/memory/named_buffers.h"
#include "trainer/base/named_text.h"
#include "trainer/checkpoint/checkpoint_folder.h"
#include "trainer/config/json_fields.h"
#include "trainer/data/run_windows.h"
#include "trainer/rate/resumed_rate.h"
#include "trainer/validation/validation_history.h"

namespace farstep {

// A site's position in its run.
struct TrainProgress {
  std::string run;
  std::string site;
  int64_t round = 0;
  int64_t step = 0;
  int64_t syncs = 0;
  double loss_sum = 0;
  RunWindowsState windows = {};
  int64_t site_sequences = 0;
  int64_t generation = 0;
  std::vector<std::string> members = {};
  std::string theta_hash;
  std::string committed_hash = {};
  bool is_before_syncs = false;
  double round_seconds = 0;
  std::vector<double> step_seconds = {};
  heterogeneity::GradientNoise noise = {};
  Json planner = {};
  Json strategy = {};
  Json products = {};
  std::optional<RateState> rate = {};
  std::optional<int64_t> unvalidated_since = {};
  ValidationHistory validations = {};
  std::optional<heterogeneity::PartialValidation> own_validation = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "name of the run", kRequired);
    visit("site", site, "name of the site", kRequired);
    visit("round", round, "outer rounds done", required(at_least(0)));
    visit("step", step, "inner steps done of the round after them", required(at_least(0)));
    visit("syncs", syncs, "syncs that all sites have done, one a fragment and round",
          required(at_least(0)));
    visit("loss_sum", loss_sum, "sum of the losses of `step`'s inner steps", kRequired);
    windows.fields(visit);
    visit("site_sequences", site_sequences, "sequences planned for this site in the rounds done",
          required(at_least(0)));
    visit("generation", generation, "version of the membership", required(at_least(0)));
    visit("members", members, "of the newest sync");
    visit("theta_hash", theta_hash, "checksum of theta_global, 16 hexadecimal digits", kRequired);
    visit("committed_hash", committed_hash,
          "the same after a sync that is received, and not applied; empty without one");
    visit("is_before_syncs", is_before_syncs, "no sync of the round after them is begun");
    visit("round_seconds", round_seconds, "time spent in the round after them", at_least(0));
    visit("step_seconds", step_seconds, "how long each of `step`'s inner steps took");
    visit("noise", noise, "what `step`'s inner steps have shown of the gradient's noise");
    visit("planner", planner, "what the planner has learned of the sites");
    visit("strategy", strategy, "how far the round's syncs have come");
    visit("products", products, "how matrix products are made, where that was measured");
    visit("rate", rate, "where the learning rate's schedule stands; null: of an older version");
    visit("unvalidated_since", unvalidated_since,
          "run_sequences before the last round, whose validation was stopped; null: none was");
    visit("validations", validations, "what all sites know of the run's validations");
    visit("own_validation", own_validation, "the site's part of the newest one");
  }
};

struct TrainState {
  TrainProgress progress;
  NamedBuffers global;       // theta_global after progress.syncs syncs, under Hugging Face names
  NamedBuffers outer;        // momentum of the outer optimizer
  NamedBuffers site;         // the site's own: inner moments, theta_local, unsent deltas
  Json run_config;           // the resolved run config
  std::string model_config;  // config.json of the model
  std::span<const NamedText> model_files =
      {};                                   // beside it, such as the tokenizer's; are only saved
  std::vector<int64_t> pinned_rounds = {};  // stay however old they are; are not saved
};

struct SavedCheckpoint {
  CheckpointEntry entry;
  int64_t bytes = 0;  // of all files in the manifest
};

// Writes the state as the checkpoint of its (round, step) in `root`. A crash at any moment leaves
// the older checkpoints. Throws DataError, for example if the disk is full, or once `stop` is
// requested.
SavedCheckpoint save_checkpoint(const std::filesystem::path& root, const TrainState& state,
                                const std::stop_token& stop = {});

// Returns the site's position at the checkpoint. Throws DataError, also for a checkpoint of another
// version of Farstep.
TrainProgress load_progress(const CheckpointEntry& entry);

// Calls `restore`, which takes a part of the checkpoint's progress. If that does not fit, throws a
// DataError that names the file and the remedy.
void restore_progress(const CheckpointEntry& entry, const std::function<void()>& restore);

// Returns the run config of the checkpoint. Throws DataError.
Json load_run_config(const CheckpointEntry& entry);

// Reads progress, run_config and model_config, and fills the buffers in `into`, which must be those
// that were saved. Throws DataError if names, dtypes or shapes differ or a file is malformed.
// resumable_checkpoints() has verified the manifest.
void load_checkpoint(const CheckpointEntry& entry, TrainState& into);

// Fills `global` and `outer`, as in TrainState, and verifies the manifest first. Throws DataError;
// the buffers are unchanged then if the manifest is at fault.
void load_global(const CheckpointEntry& entry, const NamedBuffers& global,
                 const NamedBuffers& outer);

}  // namespace farstep
