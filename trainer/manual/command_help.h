// What the program says of itself, as values: its commands with their options, its config files and
// its events. Help, man pages and shell completion are made from these alone.
#pragma once

#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// How an option stands on a command line: --json; --resume or --resume=auto; --seed 3; --sites a b.
enum class OptionShape { kFlag, kFlagOfNames, kValue, kList };

struct OptionHelp {
  std::string name;  // "--base-steps"; "folder" if it is given without its name
  OptionShape shape = OptionShape::kValue;
  bool positional = false, required = false;
  bool is_text = false;    // any text, a file's name too; else a number
  bool is_folder = false;  // it names a folder
  std::string doc = "";
  std::string limits = "";                // "at least 1"; empty if all values are allowed
  std::vector<std::string> choices = {};  // the allowed names, if there are only these
  std::string fallback = "";              // the default; empty if there is none to tell
};

// A part of a command's help after its options.
struct HelpSection {
  std::string text;           // with its heading
  std::string man_page = "";  // "farstep-run(5)", if that has the text
};

struct CommandHelp {
  std::string name, summary;
  std::vector<OptionHelp> options;
  std::vector<HelpSection> sections;
  std::vector<FieldHelp> settings = {};  // what PATH of --set PATH=VALUE can be
};

// A file that the program reads or writes, and its fields. Groups have a heading each.
struct FileHelp {
  struct Group {
    std::string heading;  // may be empty
    std::vector<FieldHelp> fields;
  };
  std::string name;     // of its man page: "farstep-run"
  std::string summary;  // "the run file: what all sites share"
  std::string text;     // paragraphs, divided by empty lines
  std::vector<Group> groups;
};

struct ProgramHelp {
  std::string version;
  std::vector<CommandHelp> commands;
  std::vector<FileHelp> files;
};

}  // namespace farstep
