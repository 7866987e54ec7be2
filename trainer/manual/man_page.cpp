#include "trainer/manual/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace farstep {

namespace {

// A name or value as the reader would type it: a plain "-" of roff may be shown as a hyphen.
std::string typed(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\\') {
      shown += "\\e";
    } else if (c == '-') {
      shown += "\\-";
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string bold(const std::string& text) {
  return "\\fB" + typed(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + typed(text) + "\\fR";
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string header(const std::string& name, int section, const ProgramHelp& program,
                   const std::string& summary) {
  // A name that is hyphenated, or stretched to the margin, is not what one must type.
  constexpr std::string_view kSetting = ".nh\n.ad l\n";
  return fmt::format(".TH \"{}\" {} \"\" \"Farstep {}\" \"Farstep\"\n{}.SH NAME\n{} \\- {}\n",
                     upper(typed(name)), section, program.version, kSetting, typed(name),
                     roff_text(summary));
}

std::string item(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", term, text);
}

std::string joined(const std::vector<std::string>& names, const std::string& between) {
  return fmt::format("{}", fmt::join(names, between));
}

// "NAME", "FOLDER", "TEXT" or "NUMBER": what stands after the name of an option.
std::string placeholder(const OptionHelp& option) {
  if (!option.choices.empty()) return "NAME";
  if (option.is_folder) return "FOLDER";
  return option.is_text ? "TEXT" : "NUMBER";
}

// The option with its value, as it is typed.
std::string term_of(const OptionHelp& option) {
  const auto many = option.shape == OptionShape::kList ? " ..." : "";
  if (option.positional) return italic(upper(option.name)) + many;
  if (option.shape == OptionShape::kFlag) return bold(option.name);
  if (option.shape == OptionShape::kFlagOfNames) {
    return bold(option.name) + "[=" + italic(joined(option.choices, "|")) + "]";
  }
  return bold(option.name) + " " + italic(placeholder(option)) + many;
}

std::string text_of(const OptionHelp& option) {
  auto text = roff_text(option.doc);
  if (!option.limits.empty()) text += fmt::format(" ({})", roff_text(option.limits));
  if (!option.choices.empty()) {
    text += fmt::format(". One of \\fB{}\\fR", typed(joined(option.choices, ", ")));
  }
  text += ".";
  if (option.required) text += " Required.";
  if (!option.fallback.empty()) text += fmt::format(" Default: {}.", bold(option.fallback));
  return text;
}

std::string synopsis(const CommandHelp& command) {
  auto text = bold("farstep " + command.name);
  for (const auto& option : command.options) {
    if (option.required && !option.positional) text += " " + term_of(option);
  }
  text += " [" + italic("OPTION") + " ...]";
  for (const auto& option : command.options) {
    if (option.positional) text += " " + term_of(option);
  }
  return text;
}

std::string exit_status() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& row : exit_codes()) {
    auto meaning = std::string(row.meaning);
    if (!row.remedy.empty()) meaning += fmt::format(": {}", row.remedy);
    text += item(bold(std::to_string(row.code)), roff_text(meaning));
  }
  return text;
}

// The pages of all files, but for `without`.
std::string see_also(std::vector<std::string> pages) {
  std::ranges::sort(pages);
  for (auto& page : pages) {
    const auto at = page.find('(');
    page = bold(page.substr(0, at)) + page.substr(at);
  }
  return ".SH SEE ALSO\n" + joined(pages, ",\n") + "\n";
}

std::vector<std::string> file_pages(const ProgramHelp& program) {
  std::vector<std::string> pages;
  for (const auto& file : program.files) pages.push_back(file.name + "(5)");
  return pages;
}

std::string paragraphs(const std::string& text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find("\n\n", at), text.size());
    shown += ".PP\n" + roff_text(text.substr(at, end - at)) + "\n";
    at = end + 2;
  }
  return shown;
}

// Lines that stay as they are.
std::string verbatim(const std::string& text) {
  std::string shown = ".PP\n.nf\n";
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    shown += roff_text(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return shown + ".fi\n";
}

std::string field_item(const FieldHelp& field) {
  auto text = roff_text(field.doc);
  if (!field.limits.empty()) text += fmt::format(" ({})", roff_text(field.limits));
  text += ".";
  if (field.fallback == "required") {
    text += " Required.";
  } else if (!field.fallback.empty()) {
    text += fmt::format(" Default: {}.", bold(field.fallback));
  }
  return item(fmt::format("{} ({})", bold(field.path), field.type), text);
}

}  // namespace

std::string roff_text(const std::string& text) {
  std::string shown;
  bool in_code = false;
  for (const char c : text) {
    const bool starts_line = shown.empty() || shown.back() == '\n';
    // At the start of a line these two would begin a request.
    if (starts_line && (c == '.' || c == '\'')) shown += "\\&";
    if (c == '`') {
      in_code = !in_code;
      shown += in_code ? "\\fB" : "\\fR";
    } else if (c == '\\') {
      shown += "\\e";
    } else if (c == '-' &&
               (in_code || shown.ends_with("\\-") || shown.ends_with(" ") || starts_line)) {
      shown += "\\-";  // of an option's name
    } else {
      shown += c;
    }
  }
  return in_code ? shown + "\\fR" : shown;
}

std::string program_page(const ProgramHelp& program) {
  auto text = header("farstep", 1, program, "trains one model on GPUs in several places");
  text +=
      fmt::format(".SH SYNOPSIS\n{} {} [{} ...]\n.br\n{} {} {}\n.br\n{} {}|{}\n", bold("farstep"),
                  italic("COMMAND"), italic("OPTION"), bold("farstep"), italic("COMMAND"),
                  bold("--help"), bold("farstep"), bold("--help"), bold("--version"));
  text += ".SH DESCRIPTION\n" +
          paragraphs(
              "Each place, a site, runs `farstep train` with a config file of its own. All sites "
              "train on one run file, which one of them or a coordinator has. They train alone for "
              "many steps, then average what they learned.\n\n"
              "`farstep --check-arguments COMMAND ...` reads the command's arguments, and does "
              "nothing.") +
          ".SH COMMANDS\n";
  for (const auto& command : program.commands) {
    text += item(bold(command.name), roff_text(command.summary) + ".");
  }
  text += exit_status() + ".SH FILES\n";
  for (const auto& file : program.files) {
    text += item(bold(file.name) + "(5)", roff_text(file.summary) + ".");
  }
  auto pages = file_pages(program);
  for (const auto& command : program.commands) pages.push_back("farstep-" + command.name + "(1)");
  return text + see_also(pages);
}

std::string command_page(const CommandHelp& command, const ProgramHelp& program) {
  auto text = header("farstep-" + command.name, 1, program, command.summary);
  text += ".SH SYNOPSIS\n" + synopsis(command) + "\n.SH OPTIONS\n";
  for (const auto& option : command.options) text += item(term_of(option), text_of(option));
  text += item(bold("-h") + ", " + bold("--help"), "prints the options and ends.");
  std::string notes;
  for (const auto& section : command.sections) {
    if (section.man_page.empty()) notes += verbatim(section.text);
  }
  if (!notes.empty()) text += ".SH NOTES\n" + notes;
  auto pages = file_pages(program);
  pages.emplace_back("farstep(1)");
  return text + exit_status() + see_also(pages);
}

std::string file_page(const FileHelp& file, const ProgramHelp& program) {
  auto text = header(file.name, 5, program, file.summary);
  text += ".SH DESCRIPTION\n" + paragraphs(file.text) + ".SH FIELDS\n";
  for (const auto& group : file.groups) {
    if (!group.heading.empty()) text += fmt::format(".SS {}\n", roff_text(group.heading));
    for (const auto& field : group.fields) text += field_item(field);
  }
  auto pages = file_pages(program);
  std::erase(pages, file.name + "(5)");
  pages.emplace_back("farstep(1)");
  return text + see_also(pages);
}

}  // namespace farstep
