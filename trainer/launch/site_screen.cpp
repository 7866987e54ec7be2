#include "trainer/launch/site_screen.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/system/log.h"
#include "trainer/telemetry/figure_text.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace {

constexpr auto kLook = std::chrono::milliseconds(100);

std::string round_text(const ShownSite& site, const RoundEvent& round) {
  const auto& progress = site.progress;
  auto text = fmt::format("round {} of {} is done", round.round, progress.rounds());
  if (round.train_loss) {
    text += fmt::format(": loss {}, {} {}/s", loss_text(round.train_loss),
                        short_count_text(progress.tokens_per_second()), progress.unit());
  }
  const auto& uses = site.account.time().rounds;
  if (const auto use = uses.find(round.round); use != uses.end()) {
    text += fmt::format(", waited {:.1f} s for peers", use->second.seconds(SpanCause::kWait));
  }
  if (const auto left = progress.seconds_left(); left && progress.fraction() < 1) {
    text += fmt::format(", {} left", time_left_text(left));
  }
  return text;
}

// A site knows its own share only; `farstep report` and the page have that of all.
std::string validation_text(const EvaluationEvent& share) {
  if (share.tokens == 0) return "";
  const auto tokens = static_cast<double>(share.tokens);
  auto text = fmt::format("validation after round {}: loss {}", share.round,
                          loss_text(share.loss_sum / tokens));
  if (share.hits) {
    text += ", accuracy " + accuracy_text(static_cast<double>(*share.hits) / tokens);
  }
  return text + ", over this site's share of the examples";
}

std::string end_text(const ShownSite& site, const EndEvent& end) {
  if (end.outcome == Outcome::kInterrupted) {
    const auto where =
        fmt::format("stopped in round {} of {}", site.progress.round(), site.progress.rounds());
    if (!site.checkpoint) return where + ": no checkpoint has been written";
    return fmt::format("{}: with --resume=auto the same command goes on from {}", where,
                       site.checkpoint->folder);
  }
  if (end.outcome != Outcome::kDone) return "";
  return site.checkpoint ? "done: the model is in " + site.checkpoint->folder : "done";
}

}  // namespace

void ShownSite::add(const Record& record) {
  has_records = true;
  progress.update(record);
  account.add(record);
  if (const auto* saved = std::get_if<CheckpointEvent>(&record.event)) checkpoint = *saved;
}

std::string news_text(const ShownSite& site, const Record& record) {
  if (const auto* round = std::get_if<RoundEvent>(&record.event)) return round_text(site, *round);
  if (const auto* share = std::get_if<EvaluationEvent>(&record.event)) {
    return validation_text(*share);
  }
  if (const auto* end = std::get_if<EndEvent>(&record.event)) return end_text(site, *end);
  return "";
}

SiteScreen::SiteScreen(const std::filesystem::path& folder, const std::string& site, std::FILE* out,
                       bool is_terminal, const Clock& clock)
    : is_terminal_(is_terminal),
      events_(folder / kEventFile),
      site_(site),
      board_(out, is_terminal, clock, {site}) {
  // What an earlier process did is no news.
  events_.skip();
  if (is_terminal_) {
    clear_before_log([this] {
      const std::lock_guard lock(mutex_);
      board_.clear();
    });
  }
  thread_ = std::thread([this] { run(); });
}

SiteScreen::~SiteScreen() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (is_terminal_) clear_before_log({});
}

void SiteScreen::run() {
  bool is_last = false;
  while (!is_last) {
    {
      std::unique_lock lock(mutex_);
      is_last = changed_.wait_for(lock, kLook, [this] { return is_ending_; });
    }
    look();
  }
  const std::lock_guard lock(mutex_);
  if (is_terminal_ && site_.has_records) board_.finish();
}

// The log takes the mutex, to clear the board, so this thread does not hold it while it logs.
void SiteScreen::look() {
  if (has_failed_) return;
  std::vector<Record> records;
  try {
    records = events_.poll();
  } catch (const std::exception& error) {
    // Training does not depend on its screen.
    spdlog::warn("the progress is not shown any more: {}", error.what());
    has_failed_ = true;
    return;
  }
  for (auto& record : records) {
    site_.add(record);
    if (const auto news = news_text(site_, record); !news.empty()) log_to_console(news);
    const std::lock_guard lock(mutex_);
    if (is_terminal_) board_.update(record);
  }
  const std::lock_guard lock(mutex_);
  if (site_.has_records) board_.draw();
}

}  // namespace farstep
