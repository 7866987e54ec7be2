// farstep train: one site's process.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "trainer/base/clock.h"
#include "trainer/base/system/log.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/resume_option.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/commands/watch_request.h"
#include "trainer/launch/interrupt.h"
#include "trainer/launch/site_screen.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/model/matmul/product_choice.h"
#include "trainer/run/site_run.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

namespace {

struct TrainOptions {
  std::string config;
  std::vector<std::string> set;
  wan::Resume resume = wan::Resume::kNever;
  std::optional<int64_t> from_round;
  WatchRequest watch;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("config", config, "the site's config file", kPositional);
    visit("set", set,
          "PATH=VALUE: replaces a value of the config; run.PATH=VALUE one of the run file");
    visit("resume", resume, kResumeDoc);
    visit("from_round", from_round, kFromRoundDoc, at_least(0));
    watch.fields(visit);
  }
};

}  // namespace

int train_command(const Arguments& arguments) {
  const auto options = parse_command_line<TrainOptions>(
      "train", arguments,
      {config_section<SiteConfig>("Fields of the site's config", "farstep-site(5)"),
       config_section<RunConfig>("Fields of the run file", "farstep-run(5)")});
  if (!options) return 0;
  require_resume(options->resume, options->from_round);
  const auto loaded = load_site(options->config, options->set);
  set_up_log(loaded.site.name, loaded.site.log_level);
  // Before any other thread starts and any kernel runs.
  if (const auto set = loaded.site.cpu.instructions) limit_cpu_instructions(*set);
  choose_named_products(loaded.site.cpu.products);
  const Interrupt interrupt;
  const RealClock clock;
  const auto own = loaded.site.folder();
  std::optional<WatchService> page;
  if (const auto how = options->watch.options()) {
    // With the coordinator here are the records of all sites.
    if (loaded.site.hosted_coordinator()) {
      page.emplace(std::vector{own / kCopiesFolder}, *how, clock, PagePlace::kCoordinator);
    } else {
      page.emplace(std::vector{own}, *how, clock);
    }
    spdlog::info("the run's page: {}", page->url());
  }
  const SiteScreen screen(own, loaded.site.name, stderr, ::isatty(STDERR_FILENO) == 1, clock);
  return train_site(loaded, {options->resume, options->from_round}, interrupt.token());
}

}  // namespace farstep
