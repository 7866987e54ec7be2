// The options by which a command that runs sites serves the run's page meanwhile.
#pragma once

#include <optional>
#include <string>

#include "trainer/config/fields.h"
#include "trainer/watch/watch_service.h"

namespace farstep {

struct WatchRequest {
  std::string watch, token_file, on_alarm;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("watch", watch, "HOST:PORT at which the run's page is served meanwhile; empty: nowhere");
    visit("token_file", token_file, "with --watch: as of `farstep watch`");
    visit("on_alarm", on_alarm, "with --watch: as of `farstep watch`");
  }

  // Returns them for the service; nullopt without --watch. Throws ConfigError if another one is
  // given without it.
  std::optional<WatchOptions> options() const;
};

}  // namespace farstep
