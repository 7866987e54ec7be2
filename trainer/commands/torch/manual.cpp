// farstep manual: man pages and shell completion, from the field lists of commands, config files
// and events.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <variant>

#include "heterogeneity/simulate/scenario.h"
#include "trainer/base/system/file.h"
#include "trainer/commands/command_line.h"
#include "trainer/commands/torch/torch_command.h"
#include "trainer/manual/completion.h"
#include "trainer/manual/man_page.h"
#include "trainer/settings/load_config.h"
#include "trainer/telemetry/event.h"

namespace farstep {

namespace {

struct ManualOptions {
  std::string output;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("output", output,
          "folder `share` to write into, as /usr/local/share or ~/.local/share: man pages below "
          "man/, completion where bash, zsh and fish look for it",
          a_folder(kRequired));
  }
};

constexpr const char* kConfigText =
    "A config file is one JSON object. Unknown members are refused. A field with a default may be "
    "left out. On a command line `--set PATH=VALUE` replaces the value at a path of the site's "
    "config, and `--set run.PATH=VALUE` one of the run file.\n\n"
    "A name with [] is a member of each entry of a list.";

constexpr const char* kEventText =
    "A site appends one JSON object a line to events.jsonl in its output folder. Beside the fields "
    "below every record has `event`, the name of its kind, `time`, when the line was written, and "
    "`site`, the name of the site that wrote it. Every field is written every time.\n\n"
    "`farstep report` and `farstep watch` show what these records say.";

template <typename Config>
FileHelp config_help(const std::string& name, const std::string& summary) {
  return {.name = name,
          .summary = summary,
          .text = kConfigText,
          .groups = {{.heading = "", .fields = list_fields<Config>()}}};
}

template <typename Body>
FileHelp::Group event_group() {
  auto fields = list_fields<Body>();
  for (auto& field : fields) field.fallback.clear();  // a record has every field
  return {.heading = fmt::format("{}: {}", Body::kName, Body::kDoc), .fields = std::move(fields)};
}

template <typename... Bodies>
FileHelp event_help(std::variant<Bodies...>&&) {
  return {.name = "farstep-events",
          .summary = "the event file: what a site did, record by record",
          .text = kEventText,
          .groups = {event_group<Bodies>()...}};
}

// The settings that --set reaches; of the run file with "run." in front.
template <typename Config>
std::vector<FieldHelp> settings_with_run() {
  auto settings = list_fields<Config>();
  for (auto& field : list_fields<RunConfig>()) {
    field.path = "run." + field.path;
    settings.push_back(std::move(field));
  }
  return settings;
}

CommandHelp help_of(const Command& command) {
  CommandHelp help;
  Arguments arguments;
  arguments.help = &help;
  command.run == nullptr ? run_torch_command(command.name, arguments) : command.run(arguments);
  // It would have done something else than to tell its help.
  if (help.name != command.name) {
    throw InternalError(fmt::format("farstep {}: does not read its options first", command.name));
  }
  if (std::ranges::count(help.options, "--set", &OptionHelp::name) > 0) {
    help.settings = command.run == coordinator_command ? settings_with_run<CoordinatorConfig>()
                                                       : settings_with_run<SiteConfig>();
  }
  return help;
}

void write(const std::filesystem::path& file, const std::string& text) {
  make_folder(file.parent_path());
  write_file_durably(file, text);
}

}  // namespace

ProgramHelp program_help() {
  ProgramHelp program{
      .version = FARSTEP_VERSION,
      .commands = {},
      .files = {
          config_help<SiteConfig>("farstep-site", "a site's config file"),
          config_help<RunConfig>("farstep-run", "the run file: what all sites of a run share"),
          config_help<CoordinatorConfig>("farstep-coordinator",
                                         "the config file of a coordinator outside any site"),
          config_help<heterogeneity::Scenario>("farstep-scenario", "what `farstep simulate` plays"),
          event_help(Event{})}};
  for (const auto& command : commands()) program.commands.push_back(help_of(command));
  return program;
}

int manual_command(const Arguments& arguments) {
  const auto options = parse_command_line<ManualOptions>("manual", arguments);
  if (!options) return 0;
  const std::filesystem::path share = options->output;
  const auto program = program_help();
  write(share / "man/man1/farstep.1", program_page(program));
  for (const auto& command : program.commands) {
    write(share / fmt::format("man/man1/farstep-{}.1", command.name),
          command_page(command, program));
  }
  for (const auto& file : program.files) {
    write(share / fmt::format("man/man5/{}.5", file.name), file_page(file, program));
  }
  write(share / "bash-completion/completions/farstep", bash_completion(program));
  write(share / "zsh/site-functions/_farstep", zsh_completion(program));
  write(share / "fish/vendor_completions.d/farstep.fish", fish_completion(program));
  return 0;
}

}  // namespace farstep
