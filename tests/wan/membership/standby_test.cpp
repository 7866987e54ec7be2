// Members of a run with several coordinators, over real sockets.
#include <future>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/wan/membership/parties.h"

namespace farstep::wan {
namespace {

// Lost members are noticed soon, and are waited for.
Deadlines standby_deadlines() {
  Deadlines deadlines = patient_deadlines();
  deadlines.heartbeat_seconds = 0.05;
  deadlines.lost_after_seconds = 2;
  deadlines.pause_seconds = 30;
  return deadlines;
}

// Sites and coordinators, of which each may be ended without a word and started again.
struct Cluster {
  explicit Cluster(int sites, int coordinators, int64_t min_sites)
      : run(served(sites, deadlines, min_sites)) {
    for (int place = 0; place < coordinators; ++place) {
      endpoints.push_back({.endpoint = kAnyPort, .shown = {}});
      this->coordinators.emplace_back();
      start(place);
      endpoints.back().endpoint = this->coordinators.back()->endpoint();
    }
    for (int i = 0; i < sites; ++i) members.push_back(member(i));
    run_ranks(sites, [this](int i) { members[i]->join({}); });
  }

  void start(int place) {
    auto own = run;
    own.place = place;
    coordinators[place] = std::make_unique<Coordinator>(endpoints[place].endpoint, own, deadlines,
                                                        clock, folder / std::to_string(place));
  }
  std::unique_ptr<Member> member(int i) { return member(i, endpoints); }
  std::unique_ptr<Member> member(int i, const std::vector<CoordinatorEndpoint>& reached) {
    return std::make_unique<Member>(reached, name_of_site(i), deadlines, clock,
                                    folder / name_of_site(i));
  }
  // Returns the generations in which the members of these sites had the sync.
  std::vector<int64_t> sync(int64_t round, const std::vector<int>& sites) {
    return run_ranks(static_cast<int>(sites.size()), [&](int i) {
      auto& member = *members[sites[i]];
      int64_t generation = 0;
      bool is_done = false;
      while (!is_done) {
        generation = member.arrive({.round = round}, {.work = {10, 1, 1}}, "aa", {})->generation;
        try {
          is_done = member.vote({.round = round}, "bb", {});
        } catch (const PeerError&) {
          // A new generation repeats the exchange.
        }
      }
      return generation;
    });
  }
  void leave() {
    run_ranks(static_cast<int>(members.size()),
              [this](int i) { members[i]->leave(Outcome::kDone, ""); });
  }

  const TemporaryFolder folder;
  const Deadlines deadlines = standby_deadlines();
  const ServedRun run;
  RealClock clock;
  std::vector<CoordinatorEndpoint> endpoints;
  std::vector<std::unique_ptr<Coordinator>> coordinators;
  std::vector<std::unique_ptr<Member>> members;
};

const std::vector<int> kAll = {0, 1, 2};

}  // namespace

TEST_CASE("a stand-by serves the run when the coordinator has gone, and no sync is lost") {
  Cluster cluster(3, 3, 2);
  CHECK(cluster.sync(1, kAll) == std::vector<int64_t>(3, 1));
  CHECK_FALSE(cluster.coordinators[1]->serves_run());
  auto second = std::async(std::launch::async, [&] { return cluster.sync(2, kAll); });
  cluster.coordinators[0].reset();
  const auto generations = second.get();
  CHECK(generations[0] > 1);
  CHECK(generations == std::vector<int64_t>(3, generations[0]));
  CHECK(cluster.coordinators[1]->serves_run());
  CHECK_FALSE(cluster.coordinators[2]->serves_run());
  // The first is a stand-by from now on, and serves when it is needed again.
  cluster.start(0);
  CHECK(cluster.sync(3, kAll) == generations);
  CHECK_FALSE(cluster.coordinators[0]->serves_run());
  cluster.coordinators[1].reset();
  CHECK(cluster.sync(4, kAll)[0] > generations[0]);
  CHECK(cluster.coordinators[0]->serves_run());
  CHECK_FALSE(cluster.coordinators[2]->serves_run());
  cluster.leave();
  // Those that did not serve it hear of the run's end, too.
  CHECK(cluster.coordinators[0]->wait_until_over(20));
  CHECK(cluster.coordinators[2]->wait_until_over(20));
}

TEST_CASE("a coordinator that ends sends its sites to a stand-by at once") {
  Cluster cluster(3, 2, 2);
  cluster.members[0]->put("compute/s0", "bf16");
  cluster.coordinators[0]->hand_over("the machine is taken away");
  cluster.coordinators[0].reset();
  const auto begin_seconds = cluster.clock.now_seconds();
  CHECK(cluster.sync(1, kAll)[2] > 1);
  CHECK(cluster.clock.now_seconds() - begin_seconds < 60);
  CHECK(cluster.members[1]->get("compute/s0") == "bf16");
}

TEST_CASE("a site that is lost with the coordinator joins again at the stand-by") {
  Cluster cluster(3, 2, 2);
  cluster.sync(1, kAll);
  cluster.coordinators[0].reset();
  cluster.members[0].reset();
  const auto generation = cluster.sync(2, {1, 2})[0];
  CHECK(generation > 1);
  // Its coordinator and its member are new processes, which know only the term file.
  cluster.start(0);
  cluster.members[0] = cluster.member(0);
  const auto welcome = cluster.members[0]->join({});
  CHECK(welcome->is_newcomer);
  CHECK(welcome->generation == generation);
  CHECK_FALSE(cluster.coordinators[0]->serves_run());
}

TEST_CASE("with too few sites a stand-by waits for the rest") {
  Cluster cluster(3, 2, 3);
  cluster.coordinators[0].reset();
  cluster.members[0].reset();
  auto others = std::async(std::launch::async, [&] { return cluster.sync(1, {1, 2}); });
  CHECK(others.wait_for(std::chrono::seconds(4)) == std::future_status::timeout);
  CHECK_FALSE(cluster.coordinators[1]->serves_run());
  cluster.members[0] = cluster.member(0);
  CHECK(cluster.members[0]->join({})->is_newcomer);
  CHECK(others.get()[0] > 1);
}

TEST_CASE("sites that pause at their coordinator go on at a stand-by that more sites reach") {
  Cluster cluster(4, 2, 3);
  cluster.sync(1, {0, 1, 2, 3});
  // The new processes of two sites reach the stand-by alone.
  auto reached = cluster.endpoints;
  reached.front().endpoint = "tcp://127.0.0.1:1";
  for (const int i : {2, 3}) {
    cluster.members[i].reset();
    cluster.members[i] = cluster.member(i, reached);
  }
  run_ranks(2, [&](int i) { cluster.members[2 + i]->join({}); });
  CHECK(cluster.coordinators[1]->serves_run());
  CHECK(cluster.sync(2, {0, 1})[0] > 1);
  wait_until_it_stands_by(*cluster.coordinators[0]);
}

TEST_CASE("a run begins at the first coordinator alone") {
  Cluster cluster(1, 2, 1);
  cluster.leave();
  cluster.coordinators[0].reset();
  auto deadlines = patient_deadlines();
  deadlines.join_seconds = 1;
  Member late(cluster.endpoints, "s0", deadlines, cluster.clock);
  CHECK_THAT(error_of<PeerError>([&] { late.join({}); }), Catch::Contains("stands by, and a run"));
}

}  // namespace farstep::wan
