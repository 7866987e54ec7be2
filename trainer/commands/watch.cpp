// farstep watch: the live page of a run, from its event files.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "trainer/base/clock.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/program.h"
#include "trainer/launch/interrupt.h"
#include "trainer/watch/watch_service.h"

namespace farstep {

namespace {

struct WatchCommandOptions : WatchOptions {
  std::vector<std::string> run_folders;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run_folders", run_folders,
          "folder of a run, or of its sites; also before the run begins, and after its end",
          a_folder(kPositional));
    WatchOptions::fields(visit);
  }
};

}  // namespace

int watch_command(const Arguments& arguments) {
  const auto options = parse_command_line<WatchCommandOptions>("watch", arguments);
  if (!options) return 0;
  const Interrupt interrupt("the page ends; a run under way goes on");
  const RealClock clock;
  const WatchService page({options->run_folders.begin(), options->run_folders.end()}, *options,
                          clock);
  fmt::print("{}\n", page.url());
  flush_output();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait(lock, interrupt.token(), [] { return false; });
  return 0;
}

}  // namespace farstep
