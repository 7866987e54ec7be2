// farstep profile: measures a site for the planner.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/base/system/log.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/profile_text.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/launch/interrupt.h"
#include "trainer/model/cpu_instructions.h"
#include "trainer/model/matmul/product_choice.h"
#include "trainer/probe/profile_site.h"

namespace farstep {

namespace {

struct ProfileOptions {
  std::string config, out;
  std::vector<std::string> set;
  bool links = false, json = false;
  double seconds = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("config", config, "the site's config file", kPositional);
    visit("out", out, "file to write the profile to; none is written without it");
    visit("set", set,
          "PATH=VALUE: replaces a value of the config; run.PATH=VALUE one of the run file");
    visit("links", links, "also measure the links; every site of the run does so at once");
    visit("seconds", seconds,
          "about how long one probe may take; of a link 10 times as long, until its rate stands "
          "still",
          above(0));
    visit("json", json, "print one JSON object instead of tables");
  }
};

// Checked before minutes of measuring whose result could not be written.
void require_folder_of(const std::string& out) {
  if (out.empty()) return;
  const auto folder = std::filesystem::absolute(out).parent_path();
  if (!std::filesystem::is_directory(folder)) {
    throw ConfigError(fmt::format("--out {}: {} is not a folder", out, folder.string()));
  }
}

}  // namespace

int profile_command(const Arguments& arguments) {
  const auto options = parse_command_line<ProfileOptions>("profile", arguments);
  if (!options) return 0;
  const auto loaded = load_site(options->config, options->set);
  set_up_log(loaded.site.name, loaded.site.log_level);
  if (!loaded.run && !options->links) {
    throw ConfigError(fmt::format(
        "{}: run: is missing; the run file says which model and batch to measure: name a copy of "
        "it, or use --links at all sites at once, for which the coordinator hands it out",
        options->config));
  }
  require_folder_of(options->out);
  if (const auto set = loaded.site.cpu.instructions) limit_cpu_instructions(*set);
  choose_named_products(loaded.site.cpu.products);
  spdlog::info("instructions: {}", cpu_instructions_text());
  const Interrupt interrupt;
  const auto result = profile_site(loaded, {.links = options->links, .seconds = options->seconds},
                                   interrupt.token());
  const auto& profile = result.profile;
  if (!result.is_complete) {
    spdlog::warn("interrupted: {} of {} devices measured in full or in part{}",
                 profile.devices.size(), loaded.site.devices.size(),
                 profile.devices.empty() ? "; no profile is written" : "");
    if (profile.devices.empty()) return kExitInterrupted;
  }
  const auto json = to_json(profile);
  if (!options->out.empty()) write_file_durably(options->out, json.dump(2) + "\n");
  fmt::print("{}", options->json ? json.dump() + "\n" : profile_text(profile));
  // The devices' figures are written already: they took minutes, and the links can be measured
  // again.
  if (!result.lost_links.empty()) {
    throw PeerError("", "the profile lacks the links: " + result.lost_links);
  }
  return result.is_complete ? 0 : kExitInterrupted;
}

}  // namespace farstep
