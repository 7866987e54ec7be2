// farstep check: what a site can find wrong with itself, while the other sites are not there.
#include <fmt/format.h>

#include "trainer/base/error.h"
#include "trainer/commands/command_line.h"
#include "trainer/run/site_checks.h"

namespace farstep {

namespace {

struct CheckOptions {
  std::string config;
  std::vector<std::string> set;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("config", config, "the site's config file", kPositional);
    visit("set", set,
          "PATH=VALUE: replaces a value of the config; run.PATH=VALUE one of the run file");
  }
};

std::string checks_text() {
  std::string text = "Checks, which `farstep train` makes too before it joins:\n";
  for (const auto& check : site_checks()) {
    text += fmt::format("  {:<12} {}\n", check.name, check.subject);
  }
  return text;
}

void print_row(std::string_view state, const SiteCheck& check, std::string_view text) {
  fmt::print("{:<8} {:<12} {}\n", state, check.name, text);
}

}  // namespace

int check_command(const Arguments& arguments) {
  const auto options = parse_command_line<CheckOptions>("check", arguments, checks_text());
  if (!options) return 0;
  const auto loaded = load_site(options->config, options->set);
  CheckedSite site(loaded);
  int exit_code = 0;
  for (const auto& check : site_checks()) {
    if (check.needs_run && !site.run) {
      print_row("later", check, "needs the run, which the coordinator hands out");
      continue;
    }
    try {
      const auto found = check.look(site);
      print_row(found ? "ok" : "later", check, found.value_or("needs what is not known here"));
    } catch (const Error& error) {
      print_row("WRONG", check, error.what());
      // All checks run, and the first wrong one decides the exit code.
      if (exit_code == 0) exit_code = error.exit_code();
    }
  }
  return exit_code;
}

}  // namespace farstep
