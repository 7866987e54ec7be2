#include "trainer/data/tokens/tokenize_state.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/strict_json.h"
#include "trainer/data/tokenizer/tokenizer_files.h"

namespace farstep {

namespace fs = std::filesystem;

namespace {

// A killed process loses the work of that time. Saving flushes the shards to the disk. On a slow
// disk it comes more rarely, so that it takes a twentieth of the time.
constexpr double kSecondsBetween = 0.5;
constexpr double kLeastRatio = 20;

std::string tokenizer_checksum(const fs::path& folder) {
  const auto content = read_file(tokenizer_file(folder));
  return checksum_text(checksum(std::as_bytes(std::span(content))));
}

// Returns the members in which the state is of other work, for a message.
std::string differences(const Json& saved, const Json& work) {
  std::string names;
  for (const auto& [name, value] : work.items()) {
    if (saved.is_object() && saved.contains(name) && saved[name] == value) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace

std::optional<TokenizeState> unfinished_state(const fs::path& folder, const Json& work) {
  const auto anew = [&](const std::string& why) -> std::optional<TokenizeState> {
    spdlog::warn("{} is unfinished work, but {}: begins anew", folder.string(), why);
    return std::nullopt;
  };
  if (fs::is_empty(folder)) return std::nullopt;
  const auto file = folder / kTokenizeStateFile;
  if (!fs::exists(file)) return anew("nothing was saved of it");
  const auto json = parse_if_json(read_file(file), file.string()).value_or(nullptr);
  // Before the fields are read: another version may have others.
  if (!json.is_object() || !json.contains("work")) {
    return anew(fmt::format("{} cannot be read", file.filename().string()));
  }
  if (const auto names = differences(json["work"], work); !names.empty()) {
    return anew(fmt::format("of other {}", names));
  }
  try {
    auto state = read_json<TokenizeState>(json, file.string());
    if (has_tokenizer(folder) && tokenizer_checksum(folder) == state.tokenizer) return state;
  } catch (const ConfigError& error) {
    return anew(error.what());
  }
  return anew("its tokenizer is damaged");
}

StateKeeper::StateKeeper(const fs::path& folder, const Json& work, SplitWriter& train,
                         SplitWriter& validation)
    : folder_(folder),
      work_(work),
      tokenizer_(tokenizer_checksum(folder)),
      train_(train),
      validation_(validation) {}

void StateKeeper::save(const InputPlace& done) {
  const double begin_seconds = clock_.now_seconds();
  const TokenizeState state{.work = work_,
                            .tokenizer = tokenizer_,
                            .done = done,
                            .train = train_.save(),
                            .validation = validation_.save()};
  // After the shards: what it says of them is on the disk.
  write_file_durably(folder_ / kTokenizeStateFile, to_json(state).dump(1) + "\n");
  const double end_seconds = clock_.now_seconds();
  next_seconds_ =
      end_seconds + std::max(kSecondsBetween, kLeastRatio * (end_seconds - begin_seconds));
}

void StateKeeper::save_if_due(const InputPlace& done) {
  if (clock_.now_seconds() >= next_seconds_) save(done);
}

void StateKeeper::finish() {
  auto file = folder_ / kTokenizeStateFile;
  remove_folder(file);
  remove_folder(file += ".partial");  // of a process that was killed while it saved
}

}  // namespace farstep
