#include "trainer/manual/completion.h"

#include "tests/support/catch.h"

using namespace farstep;
using Catch::Contains;

namespace {

CommandHelp command_with_settings(std::vector<FieldHelp> settings) {
  return {
      .name = "play",
      .summary = "it's [a] play: of two",
      .options = {{.name = "--set", .shape = OptionShape::kList, .is_text = true, .doc = "it's"}},
      .sections = {},
      .settings = std::move(settings)};
}

}  // namespace

TEST_CASE("settings have the names of an enum, true and false, or nothing") {
  const auto settings = settings_to_complete(
      command_with_settings({{"run.policy", "string", "a", "", "uniform | by_tflops | hybrid"},
                             {"pin", "boolean", "false", "", ""},
                             {"outer.rounds", "integer", "10", "", "at least 1"},
                             {"devices[].kind", "string", "cpu", "", "cpu | cuda"}}));
  REQUIRE(settings.size() == 3);  // a device's number is not known
  CHECK(settings[0].path == "run.policy");
  CHECK(settings[0].values == std::vector<std::string>{"uniform", "by_tflops", "hybrid"});
  CHECK(settings[1].values == std::vector<std::string>{"true", "false"});
  CHECK(settings[2].values.empty());
}

TEST_CASE("each shell's script has the commands, with its own quotes") {
  const ProgramHelp program{
      .version = "1",
      .commands = {command_with_settings({{"pin", "boolean", "false", "", ""}})},
      .files = {}};
  const auto bash = bash_completion(program);
  CHECK_THAT(bash, Contains("'play --set') count=many values=':settings'"));
  CHECK_THAT(bash, Contains("pin) echo 'true false'"));
  CHECK_THAT(bash, !Contains("@"));  // no part is left out
  const auto zsh = zsh_completion(program);
  CHECK_THAT(zsh, Contains("'play:it'\\''s [a] play\\: of two'"));
  CHECK_THAT(zsh, Contains("'*--set=[it'\\''s]:set:_farstep_settings'"));
  CHECK_THAT(fish_completion(program), Contains("-a play -d 'it\\'s [a] play: of two'"));
}
