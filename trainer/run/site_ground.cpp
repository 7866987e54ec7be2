// What of a site exists before it knows its run: config, clock, folder, log and checkpoints.
#include "trainer/run/site_ground.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/base/processor/usable_cores.h"
#include "trainer/base/system/file.h"
#include "trainer/base/system/log.h"
#include "trainer/peers/known_sites.h"

namespace farstep {

namespace {

// A site that serves alone updates its copy of the model somewhere.
SiteConfig with_device(SiteConfig site) {
  if (site.devices.empty()) site.devices.emplace_back();
  return site;
}

std::string device_text(const DeviceConfig& device) {
  auto text = device.kind == DeviceKind::kCpu ? fmt::format("cpu x{}", device.threads)
                                              : fmt::format("cuda:{}", device.index);
  if (!device.emulate) return text;
  const auto& emulate = *device.emulate;
  if (emulate.times) return text + fmt::format(", emulated {} times slower", *emulate.times);
  return text + (emulate.step_seconds
                     ? fmt::format(", emulated at {} s a step", *emulate.step_seconds)
                     : fmt::format(", emulated at {} s a sequence", *emulate.sequence_seconds));
}

// A folder with checkpoints holds a run, even if none of them is whole: beginning anew would lose
// it without a word.
ResumeWish resume_with(ResumeWish wanted, const std::filesystem::path& checkpoints) {
  const bool has_any = !list_checkpoints(checkpoints).empty();
  if (wanted.how == wan::Resume::kAuto && has_any) wanted.how = wan::Resume::kAlways;
  return wanted;
}

wan::OfferedState offered_state(const TrainProgress& progress) {
  wan::OfferedState state{
      .syncs = progress.syncs,
      .theta_hash = progress.committed_hash.empty() ? progress.theta_hash : progress.committed_hash,
      .members = progress.members};
  if (progress.is_before_syncs) state.round = progress.round;
  return state;
}

}  // namespace

SiteGround::SiteGround(const LoadedSite& loaded, const ResumeWish& wanted)
    : site(with_device(loaded.site)),
      cores(assign_cores(site.devices, site.pin, allowed_cores())),
      output(site.folder()),
      resume(resume_with(wanted, checkpoint_root())),
      recorder(output, loaded.site.name, clock) {
  make_folder(output);
  log_to_file(output / kLogFile);
  if (const auto shortage = core_shortage(site.devices, usable_cores()); !shortage.empty()) {
    spdlog::warn("{}", shortage);
  }
  // A new run would mix its events and checkpoints with the old ones.
  if (resume.how == wan::Resume::kNever && !list_checkpoints(checkpoint_root()).empty()) {
    throw ConfigError(fmt::format(
        "output: {} holds a run already: --resume continues it; for a new run give another output "
        "or remove it",
        output.string()));
  }
}

wan::JoinRequest SiteGround::join_request(const LoadedSite& loaded,
                                          std::optional<uint64_t> data_digest) const {
  wan::JoinRequest request;
  request.run = loaded.run;
  request.resume = resume.how;
  if (resume.how == wan::Resume::kAlways) {
    for (const auto& entry : offered()) {
      const auto progress = load_progress(entry);
      if (loaded.run) require_of_run(progress, loaded.run->at("name").get<std::string>());
      request.states.push_back(offered_state(progress));
    }
  }
  request.facts["command"] = "train";  // so that a site that only looks at its links is refused
  // Sites with other data would train another task, and nobody would see it.
  if (data_digest) request.facts["data_digest"] = checksum_text(*data_digest);
  request.profile = own_profile(site);
  return request;
}

void SiteGround::require_of_run(const TrainProgress& progress, const std::string& run) const {
  if (progress.run == run) return;
  throw ConfigError(fmt::format(
      "output: {} has checkpoints of run '{}', and this site is to train run '{}': give "
      "another output, or move that folder away",
      output.string(), progress.run, run));
}

std::vector<CheckpointEntry> SiteGround::offered() const {
  auto entries = resumable_checkpoints(checkpoint_root());
  if (!resume.from_round) return entries;
  std::vector<int64_t> others;
  for (const auto& entry : entries) {
    if (entry.step == 0) others.push_back(entry.round);
  }
  std::erase_if(entries, [&](const auto& entry) {
    return entry.step > 0 || entry.round != *resume.from_round;
  });
  if (!entries.empty()) return entries;
  throw DataError(fmt::format(
      "{}: has no whole checkpoint of round {} (--from-round), only of {}: name a round that all "
      "sites have, or copy another site's checkpoint of that round into this folder",
      checkpoint_root().string(), *resume.from_round,
      others.empty() ? "none" : fmt::format("rounds {}", fmt::join(others, ", "))));
}

std::optional<CheckpointEntry> SiteGround::newest_checkpoint() const {
  if (resume.how == wan::Resume::kNever) return std::nullopt;
  const auto entries = offered();
  return entries.empty() ? std::nullopt : std::optional(entries.front());
}

std::optional<CheckpointEntry> SiteGround::checkpoint_after(int64_t syncs) const {
  if (resume.how == wan::Resume::kNever) return std::nullopt;
  const auto entries = offered();
  if (entries.empty() && syncs == 0) {
    spdlog::log(resume.how == wan::Resume::kAuto ? spdlog::level::info : spdlog::level::warn,
                "no checkpoint is in {}: this site begins anew, as no site has done a sync",
                checkpoint_root().string());
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(
      entries, [&](const auto& entry) { return load_progress(entry).syncs == syncs; });
  if (found == entries.end()) {
    throw DataError(
        fmt::format("{}: the checkpoint after {} syncs has vanished since it was offered",
                    checkpoint_root().string(), syncs));
  }
  return *found;
}

std::vector<std::string> SiteGround::device_texts() const {
  std::vector<std::string> texts;
  for (const auto& device : site.devices) texts.push_back(device_text(device));
  return texts;
}

}  // namespace farstep
