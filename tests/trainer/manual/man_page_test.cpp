#include "trainer/manual/man_page.h"

#include "tests/support/catch.h"

using namespace farstep;
using Catch::Contains;

TEST_CASE("text of roff shows what it says, and begins no request") {
  CHECK(roff_text("a plain text") == "a plain text");
  CHECK(roff_text(".SH is text") == "\\&.SH is text");
  CHECK(roff_text("'quoted' at first") == "\\&'quoted' at first");
  CHECK(roff_text("one\n.two") == "one\n\\&.two");
  CHECK(roff_text("C:\\folder") == "C:\\efolder");
  CHECK(roff_text("give --set twice") == "give \\-\\-set twice");
  CHECK(roff_text("a well-known word") == "a well-known word");
  CHECK(roff_text("as `farstep watch` does") == "as \\fBfarstep watch\\fR does");
  CHECK(roff_text("left `open") == "left \\fBopen\\fR");
  CHECK(roff_text("").empty());
}

TEST_CASE("a command's page has each option with its values, limits and default") {
  const CommandHelp command{
      .name = "play",
      .summary = "plays a round",
      .options = {{.name = "folder", .positional = true, .required = true, .doc = "where"},
                  {.name = "--policy",
                   .is_text = true,
                   .doc = "who works",
                   .limits = "",
                   .choices = {"uniform", "hybrid"},
                   .fallback = "hybrid"},
                  {.name = "--rounds", .required = true, .doc = "how many", .limits = "at least 1"},
                  {.name = "--json", .shape = OptionShape::kFlag, .doc = "as JSON"},
                  {.name = "--resume",
                   .shape = OptionShape::kFlagOfNames,
                   .doc = "go on",
                   .limits = "",
                   .choices = {"never", "auto"}}},
      .sections = {{"Notes:\n  .first\n"}, {"Fields", "farstep-run(5)"}}};
  const ProgramHelp program{.version = "1.2",
                            .commands = {command},
                            .files = {{"farstep-run", "the run file", "A file.", {}}}};
  const auto page = command_page(command, program);
  CHECK_THAT(page, Contains(".TH \"FARSTEP\\-PLAY\" 1 \"\" \"Farstep 1.2\" \"Farstep\"\n"));
  CHECK_THAT(page, Contains("farstep\\-play \\- plays a round\n"));
  CHECK_THAT(page, Contains("\\fBfarstep play\\fR \\fB\\-\\-rounds\\fR \\fINUMBER\\fR "
                            "[\\fIOPTION\\fR ...] \\fIFOLDER\\fR\n"));
  CHECK_THAT(page, Contains("who works. One of \\fBuniform, hybrid\\fR. Default: "
                            "\\fBhybrid\\fR.\n"));
  CHECK_THAT(page, Contains("how many (at least 1). Required.\n"));
  CHECK_THAT(page, Contains("\\fB\\-\\-json\\fR\nas JSON.\n"));
  CHECK_THAT(page, Contains("\\fB\\-\\-resume\\fR[=\\fInever|auto\\fR]\n"));
  CHECK_THAT(page, Contains("Notes:\n  .first\n"));
  CHECK_THAT(page, !Contains("Fields"));  // another page has them
  CHECK_THAT(page, Contains("\\fBfarstep\\-run\\fR(5)"));
  CHECK_THAT(program_page(program), Contains("\\fBplay\\fR\nplays a round.\n"));
}

TEST_CASE("a file's page has its paragraphs and the fields of each group") {
  const FileHelp file{
      .name = "farstep-run",
      .summary = "the run file",
      .text = "One.\n\nTwo.",
      .groups = {
          {"", {{"outer.rounds", "integer", "10", "rounds", "at least 1"}}},
          {"sync: a sync", {{"site", "string", "required", "who", ""}, {"n", "x", "", "n", ""}}}}};
  const auto page = file_page(file, {.version = "1", .commands = {}, .files = {file}});
  CHECK_THAT(page, Contains(".PP\nOne.\n.PP\nTwo.\n"));
  CHECK_THAT(page, Contains("\\fBouter.rounds\\fR (integer)\nrounds (at least 1). Default: "
                            "\\fB10\\fR.\n"));
  CHECK_THAT(page, Contains(".SS sync: a sync\n.TP\n\\fBsite\\fR (string)\nwho. Required.\n"));
  CHECK_THAT(page, Contains("\\fBn\\fR (x)\nn.\n"));  // without a default, none is told
  CHECK_THAT(page, !Contains("\\fBfarstep\\-run\\fR(5)"));
}
