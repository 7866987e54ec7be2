#include "trainer/launch/finished_run.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/trainer/checkpoint/small_state.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// A site with checkpoints, and its run of three rounds.
struct Place {
  Place() {
    site.name = "north";
    site.output = folder.path().string();
    site.coordinator.endpoint = "tcp://127.0.0.1:7400";
    site.coordinator.journal = (folder / "north" / "coordinator.journal").string();
    run.name = "novels";
    run.outer.rounds = 3;
    run.deadlines.join_seconds = 7;
  }

  fs::path root() const { return folder / "north" / kCheckpointsFolder; }
  fs::path save(int64_t round, int64_t step) const {
    return save_checkpoint(root(), SmallState(round, step).state).entry.folder;
  }

  TemporaryFolder folder;
  SiteConfig site;
  RunConfig run;
};

}  // namespace

TEST_CASE("a run is finished when the newest checkpoint has all rounds of the run file") {
  Place place;
  CHECK_FALSE(finished_run(place.site, place.run));
  place.save(2, 0);
  CHECK_FALSE(finished_run(place.site, place.run));
  place.save(2, 4);
  CHECK_FALSE(finished_run(place.site, place.run));
  const auto last = place.save(3, 0);
  const auto finished = finished_run(place.site, place.run);
  REQUIRE(finished);
  CHECK(finished->doubt.empty());
  CHECK(finished->checkpoint == last);
  CHECK(finished->join_seconds == 7);
  CHECK(finished->text() ==
        "run 'novels' is finished: round 3 of 3; the model is in " + last.string());

  place.run.outer.rounds = 2;
  CHECK_THAT(finished_run(place.site, place.run).value().text(), Contains("round 3 of 2"));
  place.run.outer.rounds = 4;
  CHECK_FALSE(finished_run(place.site, place.run));
}

TEST_CASE("a damaged checkpoint and one of another run finish nothing") {
  Place place;
  place.save(2, 0);
  const auto last = place.save(3, 0);
  place.run.name = "letters";
  CHECK_FALSE(finished_run(place.site, place.run));
  place.run.name = "novels";
  CHECK(finished_run(place.site, place.run));
  write_file(last / "config.json", "{}");
  CHECK_FALSE(finished_run(place.site, place.run));
  CHECK_FALSE(finished_run(place.site, std::nullopt));
}

TEST_CASE("without a run file the checkpoint's own counts and is in doubt") {
  Place place;
  SmallState saved(3, 0);
  saved.state.run_config = {{"name", "novels"}, {"outer", {{"rounds", 3}}}};
  save_checkpoint(place.root(), saved.state);
  CHECK_THROWS_WITH(finished_run(place.site, std::nullopt), Contains("deadlines"));
  saved.state.run_config["deadlines"]["join_seconds"] = 11.0;
  save_checkpoint(place.root(), saved.state);
  const auto finished = finished_run(place.site, std::nullopt);
  REQUIRE(finished);
  CHECK_THAT(finished->doubt, Contains("no run file"));
  CHECK(finished->join_seconds == 11);
  CHECK(finished->run == "novels");
  saved.state.run_config["outer"]["rounds"] = 4;
  save_checkpoint(place.root(), saved.state);
  CHECK_FALSE(finished_run(place.site, std::nullopt));
}

TEST_CASE("a validation that was stopped leaves a doubt") {
  Place place;
  SmallState saved(3, 0);
  saved.state.progress.unvalidated_since = 12;
  save_checkpoint(place.root(), saved.state);
  CHECK_THAT(finished_run(place.site, place.run).value().doubt, Contains("validation"));
}

TEST_CASE("the journal of a killed coordinator leaves a doubt at its only host") {
  Place place;
  place.save(3, 0);
  place.site.coordinator.host = true;
  CHECK(finished_run(place.site, place.run).value().doubt.empty());
  write_file(place.site.coordinator.journal, "of a coordinator that was killed\n");
  CHECK_THAT(finished_run(place.site, place.run).value().doubt, Contains("coordinator"));
  place.site.coordinator.host = false;
  CHECK(finished_run(place.site, place.run).value().doubt.empty());
  // The others have ended at a stand-by.
  place.site.coordinator.endpoint.clear();
  place.site.coordinator.endpoints = {{"tcp://127.0.0.1:7400", "north"},
                                      {"tcp://127.0.0.1:7401", "south"}};
  CHECK(finished_run(place.site, place.run).value().doubt.empty());
}

}  // namespace farstep
