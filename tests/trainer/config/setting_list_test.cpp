#include "trainer/config/setting_list.h"

#include "tests/support/catch.h"

namespace farstep {

namespace {

struct Part {
  std::string name;
  int64_t weight = 3;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "its name", kRequired);
    visit("weight", weight, "its weight");
  }
};

struct Whole {
  std::string title = "none";
  double share = 0.5;
  std::optional<int64_t> limit;
  std::vector<Part> parts;
  Part first{"", 4};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("title", title, "a text");
    visit("share", share, "a number");
    visit("limit", limit, "a number or nothing");
    visit("parts", parts, "some parts");
    visit("first", first, "one of them");
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the settings are told from the defaults") {
  Whole whole;
  whole.limit = 8;
  whole.parts = {{"a", 3}, {"b", 5}};
  whole.first = {"c", 4};
  const auto list = list_settings(whole);
  CHECK(list.chosen ==
        Lines{"limit=8", R"(parts=[{"name":"a"},{"name":"b","weight":5}])", "first.name=c"});
  CHECK(list.defaults == Lines{"title=none", "share=0.5", "first.weight=4"});
  // 3 is the default of a part, but not of the first one.
  whole.first.weight = 3;
  CHECK(list_settings(whole).chosen.back() == "first.weight=3");
}

TEST_CASE("a text that looks like a number has its quotes") {
  Whole whole;
  for (const auto& [title, line] : {std::pair{"8", "title=\"8\""},
                                    {"null", "title=\"null\""},
                                    {"8 a", "title=8 a"},
                                    {"", "title="}}) {
    whole.title = title;
    CHECK(list_settings(whole).chosen.front() == line);
  }
}

}  // namespace farstep
