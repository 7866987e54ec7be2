// The launcher only starts processes and reads their records. The sites decide everything about the
// run, so it is the run that the same configs make on several machines. The launcher adds one
// decision: nobody restarts a process that failed here, so it ends those who would wait for it.
#include "trainer/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/system/child_process.h"
#include "trainer/base/system/file.h"
#include "trainer/launch/finished_run.h"
#include "trainer/launch/lab_places.h"
#include "trainer/settings/load_config.h"
#include "trainer/telemetry/event_log.h"
#include "trainer/telemetry/progress.h"
#include "trainer/telemetry/recorder.h"
#include "wan/sockets/host_port.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunFile = "run.json";
constexpr std::string_view kCoordinatorFile = "coordinator.json";
constexpr const char* kCoordinatorProcess = "coordinator";
constexpr std::string_view kProfileSuffix = ".profile.json";
constexpr int kLookMilliseconds = 100;   // between two reads of the sites' records
constexpr std::size_t kShownLines = 15;  // of a failed site's output

// Where a config says that a coordinator listens.
struct ListedCoordinator {
  std::string setting;  // of the config
  std::string endpoint;
  std::string process;  // in which it runs; empty: the only one that hosts one
};

struct Launched {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<ListedCoordinator> coordinators;
  bool hosts_coordinator = false;
  fs::path console;
  int network_namespace = kSameNetwork;
  std::unique_ptr<ChildProcess> process;
  std::optional<EventFollower> events;  // a site's, not the coordinator's
  bool has_begun = false;               // a site's: it has joined the run and recorded something
  bool is_asked = false;                // SIGINT was sent
};

std::vector<fs::path> configs_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    // The folder of a run also has the run file and the sites' profiles.
    const bool is_config = name.ends_with(".json") && !name.ends_with(kProfileSuffix);
    if (is_config && name != kRunFile) files.push_back(entry.path());
  }
  if (error) throw ConfigError(fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  if (std::none_of(files.begin(), files.end(),
                   [](const fs::path& file) { return file.filename() != kCoordinatorFile; })) {
    throw ConfigError(fmt::format("{}: no site config (*.json beside {}) is in the folder",
                                  folder.string(), kRunFile));
  }
  return files;
}

std::vector<ListedCoordinator> listed_coordinators(const CoordinatorAddress& coordinator) {
  if (coordinator.endpoints.empty()) return {{"coordinator.endpoint", coordinator.endpoint, ""}};
  std::vector<ListedCoordinator> listed;
  for (const auto& [endpoint, site] : coordinator.endpoints) {
    listed.push_back({fmt::format("coordinator.endpoints[{}].endpoint", listed.size()), endpoint,
                      site.empty() ? kCoordinatorProcess : site});
  }
  return listed;
}

struct Cluster {
  std::vector<Launched> launched;
  std::set<fs::path> outputs;  // of all sites; mostly one
  std::vector<SiteConfig> sites;
  std::optional<RunConfig> run;  // if a config names the run file
};

// Reads all configs before any process starts, so that a mistake in one config starts no process.
Cluster prepare(const LaunchRequest& request) {
  Cluster cluster;
  for (const auto& file : configs_of(request.folder)) {
    if (file.filename() == kCoordinatorFile) {
      const auto loaded = load_coordinator(file, {});
      cluster.run = run_config_from_json(loaded.run, loaded.coordinator.run);
      cluster.launched.push_back(
          {.name = kCoordinatorProcess,
           .arguments = {"coordinator", "--config", file.string()},
           .coordinators = {{"endpoint", loaded.coordinator.endpoint, kCoordinatorProcess}},
           .hosts_coordinator = true,
           .console = request.folder / "coordinator.txt",
           .process = nullptr,
           .events = std::nullopt});
      continue;
    }
    const auto loaded = load_site(file, request.overrides);
    if (loaded.run) cluster.run = run_config_from_json(*loaded.run, loaded.run_file);
    const auto output = loaded.site.folder();
    make_folder(output);
    cluster.outputs.insert(loaded.site.output);
    cluster.sites.push_back(loaded.site);
    cluster.launched.push_back({.name = loaded.site.name,
                                .arguments = {"train", "--config", file.string()},
                                .coordinators = listed_coordinators(loaded.site.coordinator),
                                .hosts_coordinator = loaded.site.hosted_coordinator().has_value(),
                                .console = output / "console.txt",
                                .process = nullptr,
                                .events = EventFollower(output / kEventFile)});
    auto& site = cluster.launched.back();
    site.arguments.insert(site.arguments.end(), request.options.begin(), request.options.end());
    // A bar of an earlier process would be full at once.
    site.events->skip();  // the records of an earlier process
  }
  return cluster;
}

// Returns whether all sites have all of their run, and tells so. Otherwise says to the sites how to
// resume. A site that was behind when the others ended needs them, so they must not end at once.
bool is_finished(Cluster& cluster) {
  std::size_t num_finished = 0;
  std::string text;
  for (const auto& site : cluster.sites) {
    const auto finished = finished_run(site, cluster.run);
    if (!finished || !finished->doubt.empty()) continue;
    ++num_finished;
    text += fmt::format("{}: {}\n", site.name, finished->text());
  }
  if (num_finished == cluster.sites.size()) {
    fmt::print(stderr, "{}nothing to do; more outer.rounds let the run go on\n", text);
    return true;
  }
  for (auto& one : cluster.launched) {
    if (one.events) one.arguments.emplace_back(num_finished > 0 ? "--resume" : "--resume=auto");
  }
  return false;
}

// Assigns to every process the network and the address of its site in the lab. A coordinator runs
// at the site that hosts it, or beside the first site.
void place_in_lab(std::vector<Launched>& launched, const RunConfig& run, const LabPlaces& places) {
  const auto place_of = [&run](const Launched& one) {
    return one.events ? run.site_id(one.name) : 0;
  };
  for (auto& one : launched) {
    const auto place = place_of(one);
    one.network_namespace = places.network_namespace(place);
    std::vector<std::string> changes;
    for (const auto& listed : one.coordinators) {
      const auto host = std::ranges::find_if(launched, [&](const Launched& other) {
        const bool is_named = listed.process.empty() || other.name == listed.process;
        return other.hosts_coordinator && is_named;
      });
      if (host == launched.end()) {
        throw ConfigError(fmt::format(
            "--lab: no config of the folder hosts the coordinator at {}, and out of a lab no other "
            "is reached: set coordinator.host of one site, or the sites of coordinator.endpoints",
            listed.endpoint));
      }
      // The port stays, and the address becomes that of the host's place in the lab.
      auto endpoint = wan::parse_endpoint(listed.setting, listed.endpoint);
      endpoint.host = places.address(place_of(*host));
      changes.push_back(fmt::format("{}={}", listed.setting, endpoint.endpoint()));
    }
    if (one.events) {
      changes.push_back("network.address=" + places.address(place));
      // Cleared, because a config has an address or an interface.
      changes.push_back("network.interface=");
    }
    for (const auto& change : changes) {
      one.arguments.insert(one.arguments.end(), {"--set", change});
    }
  }
}

void start(std::vector<Launched>& launched) {
  // The program itself, whatever it is called and wherever it is.
  const auto program = fs::read_symlink("/proc/self/exe");
  for (auto& one : launched) {
    const ChildOptions options{.output_file = one.console,
                               .network_namespace = one.network_namespace};
    one.process = std::make_unique<ChildProcess>(program, one.arguments, options);
  }
}

// Returns when a process has ended, or after kLookMilliseconds.
void wait_a_little(const std::vector<Launched>& launched) {
  std::vector<pollfd> running;
  for (const auto& one : launched) {
    if (!one.process->exit_code()) {
      running.push_back({.fd = one.process->poll_descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  ::poll(running.data(), running.size(), kLookMilliseconds);
}

void show_end_of_output(const Launched& failed) {
  const auto text = read_file(failed.console);
  std::size_t begin = text.size();
  // Backwards over the line ends, since a log may have millions of lines.
  for (std::size_t lines = 0; begin > 0 && lines <= kShownLines; ++lines) {
    begin = text.rfind('\n', begin - 1);
    if (begin == std::string::npos) begin = 0;
  }
  fmt::print(stderr, "\n{} ended with exit code {}; the end of {}:\n{}\n", failed.name,
             failed.process->exit_code().value_or(-1), failed.console.string(),
             text.substr(begin == 0 ? 0 : begin + 1));
}

// A second SIGINT would end a site without saving.
void ask_to_end(Launched& one) {
  if (!one.is_asked) one.process->send_signal(SIGINT);
  one.is_asked = true;
}

// Nobody restarts a coordinator of a launched run.
bool has_lost_coordinator(const std::vector<Launched>& launched) {
  const auto is_lost = [](const Launched& one) {
    return !one.hosts_coordinator || one.process->exit_code().value_or(0) != 0;
  };
  return std::ranges::any_of(launched, &Launched::hosts_coordinator) &&
         std::ranges::all_of(launched, is_lost);
}

// Nobody starts a failed process again. Members of a run that pauses would wait for it for
// pause_seconds, those of a run without coordinator for coordinator_lost_after_seconds. A site that
// waits for the others to join would wait for join_seconds, and a coordinator for its sites. Other
// members have heard of the failure, save and end.
void end_those_who_wait(std::vector<Launched>& launched, bool pauses) {
  bool has_sites = false;
  const bool all_wait = pauses || has_lost_coordinator(launched);
  for (auto& one : launched) {
    if (!one.events || one.process->exit_code()) continue;
    has_sites = true;
    if (!one.has_begun || all_wait) ask_to_end(one);
  }
  if (has_sites) return;
  for (auto& one : launched) ask_to_end(one);
}

// Whether enough sites that take part in the run have not failed. A run without min_sites has 0
// here: it ends with any of them.
bool goes_on(const std::vector<Launched>& launched, int64_t min_sites) {
  if (min_sites == 0 || has_lost_coordinator(launched)) return false;
  return std::ranges::count_if(launched, [](const Launched& one) {
           return one.has_begun && one.process->exit_code().value_or(0) == 0;
         }) >= min_sites;
}

// Until when the others may run after a process has failed.
struct Grace {
  // A loss is noticed after lost_after_seconds and a heartbeat.
  explicit Grace(const wan::Deadlines& run)
      : pauses(run.pause_seconds > 0),
        notice_seconds(run.lost_after_seconds + run.heartbeat_seconds),
        end_seconds(notice_seconds + run.checkpoint_seconds + run.leave_seconds) {}

  bool pauses;            // members wait for the failed one
  double notice_seconds;  // to hear of it: whoever has not ended by then, and waits, is ended
  double end_seconds;     // to save and leave as well: whoever has not ended by then, hangs
};

// Shows the bars until all have ended. Returns the first that failed, or null.
const Launched* watch(std::vector<Launched>& launched, const Grace& grace, int64_t min_sites,
                      const std::stop_token& stop) {
  RealClock clock;
  std::vector<std::string> sites;
  for (const auto& one : launched) {
    if (one.events) sites.push_back(one.name);
  }
  ProgressBoard board(stderr, ::isatty(STDERR_FILENO) == 1, clock, sites);
  const Launched* failed = nullptr;
  double failed_seconds = 0;
  while (true) {
    bool all_ended = true;
    for (auto& one : launched) {
      const auto code = one.process->exit_code();
      if (one.events) {
        for (const auto& record : one.events->poll()) {
          board.update(record);
          one.has_begun = true;
        }
      }
      all_ended = all_ended && code.has_value();
      // The first one that failed is the cause; the others mostly follow from it.
      if (code.value_or(0) != 0 && failed == nullptr) {
        failed = &one;
        failed_seconds = clock.now_seconds();
      }
    }
    board.draw();
    if (all_ended) break;
    // As long as the run goes on without the failed site, nobody's time is up.
    if (goes_on(launched, min_sites)) failed_seconds = clock.now_seconds();
    if (stop.stop_requested()) {
      for (auto& one : launched) ask_to_end(one);
    }
    const double since_seconds = failed == nullptr ? 0 : clock.now_seconds() - failed_seconds;
    if (since_seconds > grace.notice_seconds) end_those_who_wait(launched, grace.pauses);
    if (since_seconds > grace.end_seconds) {
      for (auto& one : launched) one.process->send_signal(SIGKILL);
    }
    wait_a_little(launched);
  }
  board.finish();
  return failed;
}

}  // namespace

int launch(const LaunchRequest& request, const std::stop_token& stop) {
  auto cluster = prepare(request);
  if (request.resumes_if_possible && is_finished(cluster)) return 0;
  auto& launched = cluster.launched;
  std::optional<LabPlaces> places;  // until the sites are started
  if (!request.lab.empty()) {
    if (!cluster.run) throw ConfigError("--lab: no config of the folder names the run file");
    places.emplace(request.lab, cluster.run->sites.size());
    place_in_lab(launched, *cluster.run, *places);
  }
  const RealClock clock;
  std::optional<WatchService> page;
  if (request.watch) {
    page.emplace(std::vector(cluster.outputs.begin(), cluster.outputs.end()), *request.watch,
                 clock);
    fmt::print(stderr, "the run's page: {}\n", page->url());
  }
  start(launched);
  const Grace grace(cluster.run ? cluster.run->deadlines : wan::Deadlines{});
  const int64_t min_sites = cluster.run ? cluster.run->min_sites.value_or(0) : 0;
  const auto* failed = watch(launched, grace, min_sites, stop);
  if (failed == nullptr) return 0;
  // Whoever stopped the run knows why it ended.
  if (!stop.stop_requested()) show_end_of_output(*failed);
  return *failed->process->exit_code();
}

}  // namespace farstep
