// farstep check: what a site can find wrong with itself, while the other sites are not there.
#include <fmt/format.h>

#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/site_checks_text.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/doctor/site_findings.h"

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

}  // namespace

int check_command(const Arguments& arguments) {
  const auto options = parse_command_line<CheckOptions>(
      "check", arguments,
      site_checks_text("Checks, which `farstep train` makes too before it joins. `farstep doctor` "
                       "makes them and looks at machine and network besides:"));
  if (!options) return 0;
  const auto loaded = load_site(options->config, options->set);
  CheckedSite site(loaded);
  std::vector<Finding> findings;
  tell_site_findings(site, [&](const Finding& finding) {
    fmt::print("{}\n", line_of(finding));
    findings.push_back(finding);
  });
  return exit_code_of(findings);
}

}  // namespace farstep
