#include "trainer/charts/comparison_page.h"

#include "tests/support/catch.h"
#include "tests/trainer/watch/watched_run.h"
#include "trainer/charts/run_curves.h"

namespace farstep {

namespace {

RunReport named(const std::string& name) {
  auto run = watched_run();
  run.name = name;
  return report_of({run.records(0), run.records(1)});
}

}  // namespace

TEST_CASE("runs of one name are told apart by their folders") {
  const std::vector reports{named("mine"), named("mine"), named("other"), named("mine")};
  const auto names = [&](const std::vector<std::filesystem::path>& folders) {
    return names_of_runs(reports, folders);
  };
  CHECK(names({"/runs/a", "/runs/b", "/runs/c", "/d"}) ==
        std::vector<std::string>{"mine (a)", "mine (b)", "other", "mine (d)"});
  CHECK(names({"/runs/a/all_sites", "/runs/b/all_sites", "/all_sites", "/other/b/all_sites"}) ==
        std::vector<std::string>{"mine (a/all_sites)", "mine (runs/b/all_sites)", "other",
                                 "mine (other/b/all_sites)"});
  // The folder of one run may hold that of another.
  CHECK(names({"/a", "/b/a", "/c", "/"}) ==
        std::vector<std::string>{"mine (/a)", "mine (b/a)", "other", "mine (/)"});
}

TEST_CASE("the page of several runs has their curves, and their texts stay text") {
  const std::vector reports{named("</script><b>&"), named("plain")};
  const std::vector<std::string> names{"</script><b>&", "plain"};
  const auto page = comparison_page(reports, names);
  const std::string begin = "<script id=\"data\" type=\"application/json\">";
  const auto data = page.find(begin) + begin.size();
  REQUIRE(data > begin.size());
  const auto text = page.substr(data, page.find("</script>", data) - data);
  CHECK(Json::parse(text) == curves_of_runs(reports, names));
  CHECK(page.find("<b>&") == page.npos);
  CHECK(page.find("&lt;/script&gt;&lt;b&gt;&amp;") != page.npos);
  for (const char* forbidden : {"https:", "src=", "@import", "url(", "<link"}) {
    INFO(forbidden);
    CHECK(page.find(forbidden) == page.npos);
  }
}

TEST_CASE("the settings that differ are told for each run") {
  const auto with = [](std::vector<std::string> settings, std::vector<std::string> defaults) {
    auto records = watched_run().records(0);
    auto& run = std::get<RunEvent>(records.front().event);
    run.settings = std::move(settings);
    run.default_settings = std::move(defaults);
    return report_of({records});
  };
  const std::vector reports{with({"name=a", "outer.rounds=8"}, {"seed=1", "sync.codec=int8"}),
                            with({"name=a", "seed=2", "outer.rounds=8", "inner.note=x=y"}, {})};
  const auto table = difference_table(reports, std::vector<std::string>{"first", "second"});
  CHECK(table.header == std::vector<std::string>{"setting", "first", "second"});
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : table.rows) rows.push_back(row.cells);
  CHECK(rows == std::vector<std::vector<std::string>>{
                    {"inner.note", "-", "x=y"}, {"seed", "1", "2"}, {"sync.codec", "int8", "-"}});
  // Runs of which nothing is known do not differ.
  const std::vector old{with({}, {}), with({}, {})};
  CHECK(difference_table(old, std::vector<std::string>{"a", "b"}).rows.empty());
}

TEST_CASE("the table has a row for each run") {
  const std::vector reports{named("a"), named("b")};
  const auto table = comparison_table(reports, std::vector<std::string>{"a", "b"});
  REQUIRE(table.rows.size() == 2);
  for (const auto& row : table.rows) CHECK(row.cells.size() == table.header.size());
  CHECK(table.rows[1].cells[0] == "b");
  CHECK(table.rows[1].cells[2] == "4 of 4");
}

}  // namespace farstep
