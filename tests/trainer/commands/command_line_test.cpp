#include "trainer/commands/command_line.h"

#include <array>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;

namespace {

enum class Speed { kSlow, kFast };
constexpr std::array<std::string_view, 2> kSpeeds{"slow", "fast"};
std::span<const std::string_view> enum_names(Speed) {
  return kSpeeds;
}

enum class Depth { kNone, kShallow, kDeep };
constexpr std::array<std::string_view, 3> kDepths{"none", "shallow", "deep"};
std::span<const std::string_view> enum_names(Depth) {
  return kDepths;
}
}  // namespace

template <>
inline constexpr std::optional<Depth> farstep::kValueWithoutText<Depth> = Depth::kShallow;

namespace {

struct Options {
  std::string folder;
  std::vector<std::string> set;
  std::optional<int64_t> windows;
  Speed speed = Speed::kSlow;
  double temperature = 0.5;
  bool json = false;
  Depth look = Depth::kNone;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("folder", folder, "a folder", kPositional);
    visit("set", set, "overrides");
    visit("windows", windows, "windows", at_least(1));
    visit("speed", speed, "which");
    visit("temperature", temperature, "heat", at_least(0));
    visit("json", json, "as JSON");
    visit("look", look, "how deep");
  }
};

struct Files {
  std::vector<std::string> profiles;
  bool json = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("profiles", profiles, "files", required(at_least(1)));
    visit("json", json, "as JSON");
  }
};

}  // namespace

TEST_CASE("options are read by the names of their fields wherever the folder stands") {
  for (const auto& arguments :
       {Arguments{"runs/x", "--set", "a=1", "--set", "b.c=two", "--json"},
        Arguments{"--set", "a=1", "--json", "--set", "b.c=two", "runs/x"}}) {
    const auto options = parse_command_line<Options>("report", arguments);
    REQUIRE(options);
    CHECK(options->folder == "runs/x");
    CHECK(options->set == std::vector<std::string>{"a=1", "b.c=two"});
    CHECK(options->json);
    CHECK_FALSE(options->windows);
    CHECK(options->temperature == 0.5);
  }
  const auto options =
      parse_command_line<Options>("report", {"7", "--windows", "3", "--speed", "fast"});
  CHECK(options->folder == "7");  // text stays text
  CHECK(options->windows == 3);
  CHECK(options->speed == Speed::kFast);
}

TEST_CASE("wrong options are refused with their name") {
  const auto refusal = [](const Arguments& arguments) -> std::string {
    try {
      parse_command_line<Options>("report", arguments);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Contains;
  CHECK_THAT(refusal({}), Contains("folder: is missing"));
  CHECK(refusal({"x", "--wndows", "3"}) ==
        "farstep report: does not take --wndows; did you mean '--windows'? --help lists the "
        "options");
  CHECK_THAT(refusal({"x", "--lok=deep"}), Contains("did you mean '--look'?"));
  CHECK_THAT(refusal({"x", "--aeroplane"}), Contains("does not take --aeroplane; --help"));
  // By the name that was typed, not the field's.
  CHECK(refusal({"x", "--windows", "0"}) == "farstep report: --windows: is 0; must be at least 1");
  CHECK_THAT(refusal({"x", "--windows", "many"}), Contains("windows"));
  CHECK_THAT(refusal({"x", "--speed", "blue"}), Contains("must be one of slow, fast"));
  CHECK_THAT(refusal({"x", "--temperature"}), Contains("temperature"));
  CHECK_THAT(refusal({"x", "y"}), Contains("y"));
}

TEST_CASE("what needs no name may have it") {
  for (const auto& arguments : {Arguments{"--folder", "runs/x"}, Arguments{"--folder=runs/x"},
                                Arguments{"--set", "a=1", "--folder", "runs/x"}}) {
    CHECK(parse_command_line<Options>("report", arguments)->folder == "runs/x");
  }
  CHECK_THROWS_AS(parse_command_line<Options>("report", {"runs/x", "--folder", "y"}), ConfigError);
}

TEST_CASE("a member of a config that an option sets is named as the option") {
  const auto refuse = [](const std::string& path) {
    return [path]() -> int { throw ConfigError("farstep report: " + path); };
  };
  const auto named = [&](const std::string& path) -> std::string {
    try {
      in_options_of<Options>("report", "plan.", refuse(path));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(named("plan.windows: is 3") == "farstep report: --windows: is 3");
  CHECK(named("plan.windowsill: is 3") == "farstep report: plan.windowsill: is 3");
  CHECK(named("sites[0].windows: is 3") == "farstep report: sites[0].windows: is 3");
  CHECK(named("plan.folder: is 3") == "farstep report: plan.folder: is 3");
  CHECK(in_options_of<Options>("report", "plan.", [] { return 7; }) == 7);
}

TEST_CASE("an option of many values takes them one after the other where nothing else could") {
  const auto options = parse_command_line<Files>("plan", {"--profiles", "a", "b", "c", "--json"});
  REQUIRE(options);
  CHECK(options->profiles == std::vector<std::string>{"a", "b", "c"});
  CHECK(options->json);
}

TEST_CASE("a flag of names stands alone or has one of them") {
  const auto look = [](const Arguments& arguments) {
    return parse_command_line<Options>("report", arguments)->look;
  };
  CHECK(look({"x"}) == Depth::kNone);
  CHECK(look({"--look", "x"}) == Depth::kShallow);  // x is the folder
  CHECK(look({"--look=deep", "x"}) == Depth::kDeep);
  CHECK(look({"x", "--look=none"}) == Depth::kNone);
  CHECK_THROWS_WITH(look({"x", "--look=far"}), Catch::Contains("none, shallow, deep"));
}

TEST_CASE("help is printed instead of running") {
  CHECK_FALSE(parse_command_line<Options>("report", {"--help"}));
}
