#include "trainer/run/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/config/site_config.h"
#include "trainer/run/child_process.h"
#include "trainer/telemetry/event_log.h"
#include "trainer/telemetry/progress.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunFile = "run.json";
constexpr std::string_view kCoordinatorFile = "coordinator.json";
constexpr std::string_view kProfileSuffix = ".profile.json";
constexpr int kLookMilliseconds = 100;   // between two looks at the sites' records
constexpr double kGraceSeconds = 60;     // for the other sites to end, after one has failed
constexpr std::size_t kShownLines = 15;  // of a failed site's output

struct Launched {
  std::string name;
  fs::path console;
  std::unique_ptr<ChildProcess> process;
  std::optional<EventFollower> events;  // a site's, not the coordinator's
};

std::vector<fs::path> configs_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
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

// Reads all configs before anything is started, so that a mistake in one starts none.
std::vector<Launched> prepare(const LaunchRequest& request, const std::vector<fs::path>& files) {
  std::vector<Launched> launched;
  for (const auto& file : files) {
    if (file.filename() == kCoordinatorFile) {
      load_coordinator(file, {});
      launched.push_back({.name = "coordinator",
                          .console = request.folder / "coordinator.txt",
                          .process = nullptr,
                          .events = std::nullopt});
    } else {
      const auto site = load_site(file, request.overrides).site;
      const auto output = fs::path(site.output) / site.name;
      make_folder(output);
      launched.push_back({.name = site.name,
                          .console = output / "console.txt",
                          .process = nullptr,
                          .events = EventFollower(output / kEventFile)});
      launched.back().events->poll();  // what an earlier process wrote is not news
    }
  }
  return launched;
}

void start(std::vector<Launched>& launched, const std::vector<fs::path>& files,
           const LaunchRequest& request) {
  const auto program = fs::read_symlink("/proc/self/exe");
  for (std::size_t i = 0; i < launched.size(); ++i) {
    const bool is_site = launched[i].events.has_value();
    std::vector<std::string> arguments{is_site ? "train" : "coordinator", "--config",
                                       files[i].string()};
    if (is_site) {
      arguments.insert(arguments.end(), request.options.begin(), request.options.end());
    }
    launched[i].process = std::make_unique<ChildProcess>(program, arguments, launched[i].console);
  }
}

// Returns when a process has ended, or it is time for the next look.
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
  for (std::size_t lines = 0; begin > 0 && lines <= kShownLines; ++lines) {
    begin = text.rfind('\n', begin - 1);
    if (begin == std::string::npos) begin = 0;
  }
  fmt::print(stderr, "\n{} ended with exit code {}; the end of {}:\n{}\n", failed.name,
             failed.process->exit_code().value_or(-1), failed.console.string(),
             text.substr(begin == 0 ? 0 : begin + 1));
}

// Shows the bars until all have ended; returns the first that failed, or null.
const Launched* watch(std::vector<Launched>& launched, const std::stop_token& stop) {
  RealClock clock;
  std::vector<std::string> sites;
  for (const auto& one : launched) {
    if (one.events) sites.push_back(one.name);
  }
  ProgressBoard board(stderr, ::isatty(STDERR_FILENO) == 1, clock, sites);
  const Launched* failed = nullptr;
  bool stop_sent = false;
  double give_up_seconds = 0;
  while (true) {
    bool all_ended = true;
    for (auto& one : launched) {
      const auto code = one.process->exit_code();
      if (one.events) {
        for (const auto& record : one.events->poll()) board.update(record);
      }
      all_ended = all_ended && code.has_value();
      if (code.value_or(0) != 0 && failed == nullptr) {
        failed = &one;
        give_up_seconds = clock.now_seconds() + kGraceSeconds;
      }
    }
    board.draw();
    if (all_ended) break;
    const bool give_up = failed != nullptr && clock.now_seconds() > give_up_seconds;
    if (give_up || (stop.stop_requested() && !stop_sent)) {
      stop_sent = true;
      for (auto& one : launched) one.process->send_signal(give_up ? SIGKILL : SIGINT);
    }
    wait_a_little(launched);
  }
  board.finish();
  return failed;
}

}  // namespace

int launch(const LaunchRequest& request, const std::stop_token& stop) {
  const auto files = configs_of(request.folder);
  auto launched = prepare(request, files);
  start(launched, files, request);
  const auto* failed = watch(launched, stop);
  if (failed == nullptr) return 0;
  if (!stop.stop_requested()) show_end_of_output(*failed);
  return *failed->process->exit_code();
}

}  // namespace farstep
