// farstep tokenize: text to token shards.
#include "trainer/data/tokens/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <stop_token>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/stopped.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokens/dataset_writer.h"
#include "trainer/launch/interrupt.h"
#include "trainer/telemetry/figure_text.h"
#include "trainer/telemetry/progress.h"

namespace farstep {

namespace {

// Says how to go on, if work is left.
int end_stopped(const std::string& output) {
  const auto partial = StagingFolder::path_for(output);
  std::error_code none;
  if (std::filesystem::exists(partial, none)) {
    fmt::print(
        stderr,
        "\nstopped: {} is as it was. The same command goes on from {}; remove that folder to "
        "give the work up\n",
        output, partial.string());
  } else {
    fmt::print(stderr, "\nstopped before the first text: {} is as it was\n", output);
  }
  return kExitInterrupted;
}

// A vocabulary's training takes minutes in one call of SentencePiece, which cannot be stopped.
[[noreturn]] void end_in_training(const std::string& output) {
  fmt::print(stderr,
             "\nstopped in the training of the vocabulary: {} is as it was; the same command "
             "begins anew\n",
             output);
  _exit(kExitInterrupted);
}

constexpr double kLeastSeconds = 0.5;  // a speed of less time would be chance

// Where encoding began, in this process.
struct Begin {
  double seconds = 0;
  TokenizeProgress progress;
};

// Returns the speed, the time left and the file. The share is that of the files' bytes, so it holds
// for compressed files too.
std::string words_of(const TokenizeProgress& now, const Begin& begin, double seconds) {
  const double share = now.share - begin.progress.share;
  if (seconds <= 0 || share <= 0) return now.what;
  return fmt::format(
      "{:.1f} MB/s, {} tokens/s, {} left, {}",
      static_cast<double>(now.bytes - begin.progress.bytes) / seconds / 1e6,
      short_count_text(static_cast<double>(now.tokens - begin.progress.tokens) / seconds),
      time_left_text(seconds / share * (1 - now.share)), now.what);
}

}  // namespace

int tokenize_command(const Arguments& arguments) {
  const auto options = parse_command_line<TokenizeOptions>("tokenize", arguments);
  if (!options) return 0;
  const Interrupt interrupt("interrupted");
  std::atomic<bool> trains = false;
  const std::stop_callback stopped(interrupt.token(), [&] {
    if (trains) end_in_training(options->output);
  });
  const RealClock clock;
  ProgressBar bar(stderr, ::isatty(STDERR_FILENO) == 1, clock, "tokenize");
  std::optional<Begin> begin;
  const auto show = [&](const TokenizeProgress& progress) {
    trains = progress.trains;
    const double now_seconds = clock.now_seconds();
    if (!begin && !progress.trains) begin = {now_seconds, progress};
    bar.show(progress.share,
             begin ? words_of(progress, *begin, now_seconds - begin->seconds) : progress.what);
  };
  TokenizeResult result;
  try {
    result = tokenize(*options, show, interrupt.token());
  } catch (const Stopped&) {
    return end_stopped(options->output);
  }
  const double seconds = begin ? clock.now_seconds() - begin->seconds : 0;
  const auto bytes = static_cast<double>(result.train.bytes + result.validation.bytes -
                                         (begin ? begin->progress.bytes : 0));
  bar.finish(fmt::format(
      "{} file{}, vocabulary {}, {} training and {} validation tokens in {}{}{}", result.files,
      result.files == 1 ? "" : "s", result.vocabulary, result.train.tokens,
      result.validation.tokens, options->output,
      result.skipped > 0 ? fmt::format(", {} documents left out", result.skipped) : "",
      seconds > kLeastSeconds ? fmt::format("; {:.1f} MB/s", bytes / seconds / 1e6) : ""));
  return 0;
}

}  // namespace farstep
