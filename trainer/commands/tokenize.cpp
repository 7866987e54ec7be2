// farstep tokenize: text to token shards.
#include "trainer/data/tokens/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <stop_token>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/launch/interrupt.h"
#include "trainer/telemetry/figure_text.h"
#include "trainer/telemetry/progress.h"

namespace farstep {

namespace {

// Says what is left, and ends the process. A vocabulary's training takes minutes in one call of
// SentencePiece, which cannot be stopped; and nothing is lost, as the output appears at the end.
[[noreturn]] void end_at_once(const std::string& output) {
  const auto partial = StagingFolder::path_for(output);
  std::error_code none;
  if (std::filesystem::exists(partial, none)) {
    fmt::print(stderr,
               "\nstopped: {} is as it was; {} is left unfinished, and the next `farstep tokenize` "
               "to that output removes it\n",
               output, partial.string());
  }
  _exit(kExitInterrupted);
}

constexpr double kLeastSeconds = 0.5;  // a speed of less time would be chance

// Returns the speed, the time left and the file. The share is that of the files' bytes, so it holds
// for compressed files too.
std::string words_of(const TokenizeProgress& progress, double seconds) {
  if (seconds <= 0 || progress.share <= 0) return progress.what;
  return fmt::format(
      "{:.1f} MB/s, {} tokens/s, {} left, {}", static_cast<double>(progress.bytes) / seconds / 1e6,
      short_count_text(static_cast<double>(progress.tokens) / seconds),
      time_left_text(seconds / progress.share * (1 - progress.share)), progress.what);
}

}  // namespace

int tokenize_command(const Arguments& arguments) {
  const auto options = parse_command_line<TokenizeOptions>("tokenize", arguments);
  if (!options) return 0;
  const Interrupt interrupt("interrupted");
  // Encoding has no stop token: the whole process ends, and the folder without its final name
  // stays.
  const std::stop_callback stopped(interrupt.token(), [&] { end_at_once(options->output); });
  const RealClock clock;
  ProgressBar bar(stderr, ::isatty(STDERR_FILENO) == 1, clock, "tokenize");
  std::optional<double> start_seconds;  // of encoding
  const auto result = tokenize(*options, [&](const TokenizeProgress& progress) {
    const double now_seconds = clock.now_seconds();
    if (progress.bytes > 0 && !start_seconds) start_seconds = now_seconds;
    bar.show(progress.share, words_of(progress, now_seconds - start_seconds.value_or(now_seconds)));
  });
  const double seconds = clock.now_seconds() - start_seconds.value_or(clock.now_seconds());
  const auto bytes = static_cast<double>(result.train.bytes + result.validation.bytes);
  bar.finish(fmt::format(
      "{} files, vocabulary {}, {} training and {} validation tokens in {}{}{}", result.files,
      result.vocabulary, result.train.tokens, result.validation.tokens, options->output,
      result.skipped > 0 ? fmt::format(", {} documents left out", result.skipped) : "",
      seconds > kLeastSeconds ? fmt::format("; {:.1f} MB/s", bytes / seconds / 1e6) : ""));
  return 0;
}

}  // namespace farstep
