// farstep tokenize: text to token shards.
#include "trainer/data/tokens/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include "trainer/base/clock.h"
#include "trainer/commands/command_line.h"
#include "trainer/telemetry/progress.h"

namespace farstep {

int tokenize_command(const Arguments& arguments) {
  const auto options = parse_command_line<TokenizeOptions>("tokenize", arguments);
  if (!options) return 0;
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
