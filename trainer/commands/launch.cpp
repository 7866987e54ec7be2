// farstep launch: every site of a folder, on this machine.
#include <fmt/format.h>

#include "trainer/commands/command_line.h"
#include "trainer/commands/resume_option.h"
#include "trainer/commands/watch_request.h"
#include "trainer/launch/interrupt.h"
#include "trainer/launch/launcher.h"

namespace farstep {

namespace {

struct LaunchOptions {
  std::string folder;
  std::vector<std::string> set;
  wan::Resume resume = wan::Resume::kNever;
  std::optional<int64_t> from_round;
  std::string lab;
  WatchRequest watch;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("folder", folder, "folder with run.json and a config a site", a_folder(kPositional));
    visit("set", set, "PATH=VALUE: passed on to every site");
    visit("resume", resume, kResumeDoc);
    visit("from_round", from_round, kFromRoundDoc, at_least(0));
    visit("lab", lab,
          "lab.json of a running scripts/wan_lab: sites live in its network namespaces");
    watch.fields(visit);
  }
};

}  // namespace

int launch_command(const Arguments& arguments) {
  const auto options = parse_command_line<LaunchOptions>("launch", arguments);
  if (!options) return 0;
  require_resume(options->resume, options->from_round);
  LaunchRequest request{.folder = options->folder,
                        .options = {},
                        .overrides = options->set,
                        .watch = options->watch.options(),
                        .lab = options->lab};
  for (const auto& text : options->set) {
    request.options.insert(request.options.end(), {"--set", text});
  }
  if (options->resume == wan::Resume::kAlways) request.options.emplace_back("--resume");
  if (options->from_round) {
    request.options.push_back(fmt::format("--from-round={}", *options->from_round));
  }
  request.resumes_if_possible = options->resume == wan::Resume::kAuto;
  const Interrupt interrupt;
  return launch(request, interrupt.token());
}

}  // namespace farstep
