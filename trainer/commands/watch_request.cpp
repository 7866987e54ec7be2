#include "trainer/commands/watch_request.h"

#include "trainer/base/error.h"

namespace farstep {

std::optional<WatchOptions> WatchRequest::options() const {
  if (!watch.empty()) {
    return WatchOptions{.listen = watch,
                        .token_file = token_file,
                        .on_alarm = on_alarm,
                        .listen_option = "--watch"};
  }
  if (!token_file.empty() || !on_alarm.empty()) {
    throw ConfigError("--token-file and --on-alarm are of the page: state --watch HOST:PORT too");
  }
  return std::nullopt;
}

}  // namespace farstep
