// farstep tokenize: text to token shards.
#include "trainer/data/tokens/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <stop_token>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/data/tokens/token_dataset.h"
#include "trainer/launch/interrupt.h"
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
  const auto result =
      tokenize(*options, [&bar](double share, const std::string& what) { bar.show(share, what); });
  bar.finish(fmt::format("{} files, vocabulary {}, {} training and {} validation tokens in {}",
                         result.files, result.vocabulary, result.train.tokens,
                         result.validation.tokens, options->output));
  return 0;
}

}  // namespace farstep
