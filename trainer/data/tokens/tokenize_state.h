// How far an unfinished `farstep tokenize` is, in a file of its folder, so that the same command
// goes on with it.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/base/clock.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/data/tokens/encoding_queue.h"

namespace farstep {

inline constexpr std::string_view kTokenizeStateFile = "unfinished.json";

struct TokenizeState {
  int64_t format = 2;
  Json work;              // what decides the dataset's bytes: program, settings, inputs
  std::string tokenizer;  // checksum of the tokenizer's file in the folder
  InputPlace done;        // whose tokens are in the shards
  SplitPart train, validation;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("format", format, "version of this file", in_range(2, 2));
    visit("work", work, "program, settings and inputs", kRequired);
    visit("tokenizer", tokenizer, "checksum of the tokenizer's file", kRequired);
    visit("done", done, "the part of the input that is in the shards", kRequired);
    visit("train", train, "its tokens to train on", kRequired);
    visit("validation", validation, "its tokens to validate with", kRequired);
  }
};

// Returns the state of `work` that `folder` holds, if another process can go on with it. Else logs
// why not, unless the folder is empty, and returns nullopt.
std::optional<TokenizeState> unfinished_state(const std::filesystem::path& folder,
                                              const Json& work);

// Saves the state of one call of tokenize() in its folder.
class StateKeeper {
 public:
  // The tokenizer is in `folder`; all arguments must outlive this.
  StateKeeper(const std::filesystem::path& folder, const Json& work, SplitWriter& train,
              SplitWriter& validation);

  // Saves that all up to `done` is in both splits. Throws DataError.
  void save(const InputPlace& done);
  // The same, if the last time is half a second ago or more.
  void save_if_due(const InputPlace& done);
  // Removes the file: the dataset is whole. Throws DataError.
  void finish();

 private:
  const std::filesystem::path& folder_;
  const Json& work_;
  const std::string tokenizer_;
  SplitWriter &train_, &validation_;
  const RealClock clock_;
  double next_seconds_ = 0;
};

}  // namespace farstep
