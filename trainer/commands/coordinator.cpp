// farstep coordinator: the coordinator alone.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/base/system/log.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/watch_request.h"
#include "trainer/launch/interrupt.h"
#include "trainer/peers/secure_port.h"
#include "trainer/settings/load_config.h"
#include "trainer/telemetry/recorder.h"
#include "wan/membership/coordinator.h"
#include "wan/sockets/local_address.h"

namespace farstep {

namespace {

constexpr double kLookSeconds = 0.2;  // between two checks for a requested stop

struct CoordinatorOptions {
  std::string config;
  std::vector<std::string> set;
  WatchRequest watch;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("config", config, "the coordinator's config file", kPositional);
    visit("set", set,
          "PATH=VALUE: replaces a value of the config; run.PATH=VALUE one of the run file");
    watch.fields(visit);
  }
};

}  // namespace

int coordinator_command(const Arguments& arguments) {
  const auto options = parse_command_line<CoordinatorOptions>(
      "coordinator", arguments,
      {config_section<CoordinatorConfig>("Fields of the coordinator's config",
                                         "farstep-coordinator(5)"),
       config_section<RunConfig>("Fields of the run file", "farstep-run(5)")});
  if (!options) return 0;
  const auto loaded = load_coordinator(options->config, options->set);
  const auto& config = loaded.coordinator;
  set_up_log("coordinator", config.log_level);
  if (!config.output.empty()) {
    make_folder(config.output);
    log_to_file(std::filesystem::path(config.output) / "coordinator.txt");
  }
  const Interrupt interrupt;
  RealClock clock;
  const auto copies = config.output.empty() ? std::filesystem::path()
                                            : std::filesystem::path(config.output) / kCopiesFolder;
  std::optional<WatchService> page;
  if (const auto how = options->watch.options()) {
    if (copies.empty()) throw ConfigError("--watch: the page needs the config's `output` folder");
    page.emplace(std::vector{copies}, *how, clock, PagePlace::kCoordinator);
    spdlog::info("the run's page: {}", page->url());
  }
  const auto run = run_config_from_json(loaded.run, config.run);
  std::optional<SecurePort> secure_port;
  if (!config.keys.empty()) {
    constexpr const char* kField = "endpoint";
    secure_port.emplace(
        config.keys, wan::listening_addresses(kField, wan::parse_endpoint(kField, config.endpoint)),
        std::nullopt, clock);
  }
  wan::Coordinator coordinator(secure_port ? kBehindSecurePort : config.endpoint,
                               served_run(run, config.place), run.deadlines, clock, config.journal,
                               secure_port ? secure_port->visitors("") : wan::CoordinatorVisitors{},
                               copies);
  if (secure_port) secure_port->offer_coordinator(coordinator.endpoint());
  // The coordinator has a thread of its own; this one only waits for its end or a signal.
  while (!coordinator.wait_until_over(kLookSeconds)) {
    if (interrupt.token().stop_requested()) return kExitInterrupted;
  }
  if (const auto failure = coordinator.failure(); !failure.empty()) throw PeerError("", failure);
  return 0;
}

}  // namespace farstep
