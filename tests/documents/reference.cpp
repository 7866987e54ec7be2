// Writes docs/reference/ from the field lists, or checks that its files are what it would write.
//
//   reference [--check] FOLDER
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heterogeneity/simulate/scenario.h"
#include "tests/support/write_file.h"
#include "trainer/base/error.h"
#include "trainer/base/system/file.h"
#include "trainer/config/json_fields.h"
#include "trainer/facade/outer_settings.h"
#include "trainer/settings/load_config.h"
#include "trainer/settings/run_config.h"
#include "trainer/telemetry/event.h"

namespace farstep {

namespace {

constexpr std::string_view kRenew =
    "cmake --build --preset release --target reference && build/release/reference docs/reference";

constexpr std::string_view kConfigIntroduction = R"(# Reference: every field of every config file

A config file is one JSON object. Unknown members are refused. A field with a default may be left
out. The command-line option `--set PATH=VALUE` replaces the value at a path of the site's config,
`--set run.PATH=VALUE` one of the run file. [Several machines](../guide/several_machines.md) shows
whole files.
)";

constexpr std::string_view kLibraryIntroduction = R"(# Reference: the settings of the library

A program with a training loop of its own joins a run with two JSON texts, of the run and of its
site. Unknown members are refused. [Library](../library.md) explains them.
)";

constexpr std::string_view kEventIntroduction = R"(# Reference: every field of every event

[Events](../events.md) explains the file, the causes of idle time and the sums. Beside the fields
below every record has `event`, the name of its kind, `time`, when the line was written, and `site`,
the name of the site that wrote it. Every field is written every time.
)";

constexpr std::string_view kExitCodeIntroduction = R"(# Reference: exit codes

Every command ends with one of these codes. Only what a new start can mend has code 4, so a service
manager may restart on 4 alone.

| exit code | meaning | what to do |
|---|---|---|
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string meaning(const FieldHelp& row) {
  if (row.limits.empty()) return row.doc;
  const auto of = row.type.starts_with("list") ? "entries: " : "";
  return fmt::format("{} ({}{})", row.doc, of, replaced(row.limits, " | ", ", "));
}

// Rows of the top level first; then a table a member that has members.
std::string config_tables(std::vector<FieldHelp> rows) {
  const auto group = [](const FieldHelp& row) {
    const auto dot = row.path.find('.');
    return dot == row.path.npos ? "" : row.path.substr(0, dot);
  };
  std::stable_partition(rows.begin(), rows.end(),
                        [&](const FieldHelp& row) { return group(row).empty(); });
  std::string text, open = "?";
  for (const auto& row : rows) {
    if (group(row) != open) {
      open = group(row);
      if (!open.empty()) text += fmt::format("\n### `{}`\n", open);
      text += "\n| field | type | default | meaning |\n|---|---|---|---|\n";
    }
    const auto fallback =
        row.fallback == "required" ? row.fallback : fmt::format("`{}`", row.fallback);
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.path, row.type, fallback, meaning(row));
  }
  return text;
}

template <typename Config>
std::string config_section(std::string_view heading) {
  return fmt::format("\n## {}\n{}", heading, config_tables(list_fields<Config>()));
}

std::string config_page() {
  return std::string(kConfigIntroduction) +
         config_section<SiteConfig>("Site's config: `farstep train`, `farstep profile`") +
         config_section<RunConfig>("Run file: `run` in a site's config") +
         config_section<CoordinatorConfig>("Coordinator alone: `farstep coordinator`") +
         config_section<heterogeneity::Scenario>("Scenario: `farstep simulate --scenario`");
}

std::string library_page() {
  return std::string(kLibraryIntroduction) +
         config_section<OuterRunConfig>("Run: the same at all sites") +
         config_section<OuterSiteConfig>("Site");
}

template <typename Body>
std::string event_section() {
  std::string text = fmt::format("\n## `{}`: {}\n\n| field | type | meaning |\n|---|---|---|\n",
                                 Body::kName, Body::kDoc);
  for (const auto& row : list_fields<Body>()) {
    text += fmt::format("| `{}` | {} | {} |\n", row.path, row.type, meaning(row));
  }
  return text;
}

template <typename... Bodies>
std::string event_page(std::variant<Bodies...>&&) {
  return std::string(kEventIntroduction) + (event_section<Bodies>() + ...);
}

std::string exit_code_page() {
  auto text = std::string(kExitCodeIntroduction);
  for (const auto& row : exit_codes()) {
    text += fmt::format("| {} | {} | {} |\n", row.code, row.meaning, row.remedy);
  }
  return text;
}

int run(std::vector<std::string> arguments) {
  const bool check = !arguments.empty() && arguments[0] == "--check";
  if (check) arguments.erase(arguments.begin());
  if (arguments.size() != 1 || arguments[0].starts_with("-")) {
    std::cerr << "usage: reference [--check] FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[0];
  const std::pair<const char*, std::string> pages[] = {{"config.md", config_page()},
                                                       {"library.md", library_page()},
                                                       {"events.md", event_page(Event{})},
                                                       {"exit_codes.md", exit_code_page()}};
  for (const auto& [name, text] : pages) {
    const auto page = folder / name;
    if (!check) {
      write_file(page, text);
    } else if (!std::filesystem::exists(page) || read_file(page) != text) {
      std::cerr << fmt::format("{} is not what the field lists say; renew it by\n  {}\n",
                               page.string(), kRenew);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace farstep

int main(int count, char** values) {
  return farstep::run({values + 1, values + count});
}
