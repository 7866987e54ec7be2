// farstep inspect: what a dataset folder holds.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/commands/command_line.h"
#include "trainer/config/strict_json.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_files.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  std::string folder;
  int64_t windows = 3, window_tokens = 48;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("folder", folder, "dataset folder", a_folder(kPositional));
    visit("windows", windows, "windows of each split to decode, evenly spread", at_least(0));
    visit("window_tokens", window_tokens, "tokens of a window", at_least(1));
  }
};

// Returns what dataset.json says of a split; null where other programs made the folder.
Json facts_of(const fs::path& folder, std::string_view split) {
  std::error_code none;
  if (!fs::exists(folder / kDatasetFile, none)) return nullptr;
  const auto file = folder / kDatasetFile;
  const auto facts = parse_if_json(read_file(file), file.string());
  if (!facts || !facts->is_object() || !facts->contains("splits")) return nullptr;
  const auto& splits = facts->at("splits");
  return splits.is_object() && splits.contains(split) ? splits[std::string(split)] : Json();
}

void print_split(const fs::path& folder, std::string_view split, const TokenDataset& dataset) {
  const auto facts = facts_of(folder, split);
  fmt::print("{:<11} {} tokens", split, count_text(dataset.num_tokens()));
  if (facts.is_object()) {
    const auto number = [&](const char* name) { return facts.value(name, int64_t{0}); };
    fmt::print(" of {} documents, {} of text, in {} shards", count_text(number("documents")),
               bytes_text(number("bytes")), number("shards"));
  }
  fmt::print("\n");
}

void print_windows(std::string_view split, const TokenDataset& dataset, const Tokenizer& tokenizer,
                   const InspectOptions& options) {
  const int64_t length = std::min(options.window_tokens, dataset.num_tokens());
  const int64_t room = dataset.num_tokens() - length;
  const int64_t windows = std::min(options.windows, room + 1);  // no window twice
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t offset = windows == 1 ? 0 : room / (windows - 1) * i;
    std::vector<int64_t> tokens(static_cast<std::size_t>(length));
    dataset.read(offset, tokens);
    const std::vector<int32_t> ids(tokens.begin(), tokens.end());
    // As a JSON string, so that newlines and control characters show.
    fmt::print("{} from token {}: {}\n", split, count_text(offset),
               Json(tokenizer.decode(ids)).dump());
  }
}

}  // namespace

int inspect_command(const Arguments& arguments) {
  const auto options = parse_command_line<InspectOptions>("inspect", arguments);
  if (!options) return 0;
  const fs::path folder = options->folder;
  const TokenData all(folder);
  const auto& data = all.sources.front();
  print_split(folder, kTrainSplit, data.training);
  if (data.validation) print_split(folder, kValidationSplit, *data.validation);
  fmt::print("vocabulary  {}, end of document {}\nchecksum    {}, equal at all sites of a run\n",
             count_text(data.training.vocabulary()), data.training.eos(),
             checksum_text(data.digest()));
  if (!has_tokenizer(folder)) {
    fmt::print("tokenizer   none in this folder, so no text\n");
    return 0;
  }
  const auto tokenizer = Tokenizer::load(folder);
  fmt::print("tokenizer   {}, {} tokens\n", tokenizer_file(folder).filename().string(),
             count_text(tokenizer->vocabulary()));
  if (tokenizer->vocabulary() != data.training.vocabulary()) {
    throw DataError(
        fmt::format("{}: the shards have a vocabulary of {}, the tokenizer of {}: another "
                    "tokenizer made them",
                    folder.string(), data.training.vocabulary(), tokenizer->vocabulary()));
  }
  print_windows(kTrainSplit, data.training, *tokenizer, *options);
  if (data.validation) print_windows(kValidationSplit, *data.validation, *tokenizer, *options);
  return 0;
}

}  // namespace farstep
