// Members whose coordinator dies and comes back, over real sockets.
#include <future>

#include "tests/support/catch.h"
#include "tests/support/log_capture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/write_file.h"
#include "tests/wan/membership/parties.h"
#include "tests/wan/membership/puppet.h"
#include "trainer/base/system/file.h"

namespace farstep::wan {
namespace {

// Sites whose coordinator can be ended without a word and started again.
struct Restartable {
  explicit Restartable(int sites, std::optional<int64_t> min_sites = {},
                       const Deadlines& wanted = patient_deadlines())
      : deadlines(wanted), run(served(sites, wanted, min_sites)) {
    start();
    endpoint = coordinator->endpoint();
    for (int i = 0; i < sites; ++i) {
      members.push_back(std::make_unique<Member>(endpoint, name_of_site(i), deadlines, clock,
                                                 folder / name_of_site(i)));
    }
    run_ranks(sites, [this](int i) { members[i]->join({}); });
  }

  // The sites hear no more of its end than of a crash.
  void restart() {
    coordinator.reset();
    start();
  }
  void start() {
    coordinator = std::make_unique<Coordinator>(endpoint, run, deadlines, clock, journal);
  }
  void leave() {
    run_ranks(static_cast<int>(members.size()),
              [this](int i) { members[i]->leave(Outcome::kDone, ""); });
  }

  const TemporaryFolder folder;
  const std::filesystem::path journal = folder / "kept" / "journal";
  const Deadlines deadlines;
  const ServedRun run;
  RealClock clock;
  std::string endpoint = kAnyPort;
  std::unique_ptr<Coordinator> coordinator;
  std::vector<std::unique_ptr<Member>> members;
};

std::future<int64_t> sync_of(Member& member, int64_t round) {
  return std::async(std::launch::async, [&member, round] {
    const auto go = member.arrive({.round = round}, {.work = {10, 1, 1}}, "aa", {});
    member.vote({.round = round}, "bb", {});
    return go->generation;
  });
}

TEST_CASE("a coordinator restarts at any point of a sync and no sync is lost") {
  Restartable party(2);
  for (int64_t round = 1; round <= 6; ++round) {
    auto first = sync_of(*party.members[0], round);
    party.restart();
    auto second = std::async(std::launch::async, [&] {
      const auto go = party.members[1]->arrive({.round = round}, {.work = {10, 1, 1}}, "aa", {});
      REQUIRE(go);
      CHECK(go->contributions.size() == 2);
    });
    second.get();
    // The other one has its go, or asks for it once more; perhaps it has voted.
    party.restart();
    party.members[1]->vote({.round = round}, "bb", {});
    CHECK(first.get() == 1);
    party.restart();
  }
  for (const auto& member : party.members) CHECK_FALSE(member->has_failed());
  party.leave();
  CHECK(party.coordinator->wait_until_over(10));
  CHECK(party.coordinator->failure().empty());
  party.coordinator.reset();
  CHECK_FALSE(std::filesystem::exists(party.journal));
}

TEST_CASE("values outlive the coordinator that took them") {
  Restartable party(2);
  party.members[0]->put("address", "value");
  auto late = std::async(std::launch::async, [&] { return party.members[1]->get("later"); });
  party.restart();
  CHECK(party.members[1]->get("address") == "value");
  party.members[0]->put("later", "too");
  CHECK(late.get() == "too");
  party.leave();
}

TEST_CASE("a coordinator that restarts loses whoever does not come back and keeps the others") {
  auto deadlines = quick_deadlines();
  deadlines.coordinator_lost_after_seconds = 60;
  Restartable party(3, 1, deadlines);
  party.coordinator.reset();
  party.members[2].reset();
  party.start();
  auto first = sync_of(*party.members[0], 1);
  auto second = sync_of(*party.members[1], 1);
  CHECK(first.get() == 2);
  CHECK(second.get() == 2);
}

TEST_CASE("a run goes on while its journal cannot be written, and then has one again") {
  Restartable party(1);
  const auto kept = party.journal.parent_path();
  std::filesystem::rename(kept, party.folder / "gone");
  CHECK(sync_of(*party.members[0], 1).get() == 1);
  CHECK_FALSE(std::filesystem::exists(party.journal));
  std::filesystem::rename(party.folder / "gone", kept);
  CHECK(sync_of(*party.members[0], 2).get() == 1);
  party.restart();
  CHECK(sync_of(*party.members[0], 3).get() == 1);
  party.leave();
}

TEST_CASE("a site waits for a coordinator for its own time and ends then") {
  Restartable party(1, {}, quick_deadlines());
  party.coordinator.reset();
  CHECK_THAT(error_of<PeerError>([&] { party.members[0]->arrive({}, {}, "aa", {}); }),
             Catch::Contains("silent for more than 1 s"));
}

TEST_CASE("a coordinator without the journal goes on with its members") {
  Restartable party(2);
  party.members[0]->put("compute/s0", "bf16");
  party.coordinator.reset();
  std::filesystem::remove(party.journal);
  party.start();
  const auto generations = run_ranks(2, [&](int i) {
    auto& member = *party.members[i];
    const auto go = member.arrive({}, {}, "aa", {});
    member.vote({}, "bb", {});
    return go->sites.size() == 2 ? go->generation : 0;
  });
  CHECK(generations[0] > 1);
  CHECK(generations[0] == generations[1]);
  CHECK(party.members[1]->get("compute/s0") == "bf16");
}

TEST_CASE("new processes go on when none of the old ones comes back") {
  Restartable party(2, {}, quick_deadlines());
  party.coordinator.reset();
  party.members.clear();
  party.start();
  const auto terms = run_ranks(2, [&](int i) {
    Member member(party.endpoint, name_of_site(i), patient_deadlines(), party.clock);
    const int64_t term = member.join({})->term;
    member.leave(Outcome::kDone, "");
    return term;
  });
  // The new run's term is above that of the old one.
  CHECK(terms[0] > 1);
  CHECK(terms[1] == terms[0]);
  CHECK(party.coordinator->wait_until_over(10));
}

TEST_CASE("a member that is left behind hears that it may join again") {
  for (const bool is_left_behind : {true, false}) {
    Puppet puppet(0);
    puppet.send(UnknownSiteMessage{"it was silent"});
    puppet.send(RefusedMessage{"the others go on", true, is_left_behind});
    bool may_join = false;
    CHECK_THAT(error_of<PeerError>([&] {
                 try {
                   puppet.member.arrive({}, {}, "aa", {});
                 } catch (const LeftBehindError&) {
                   may_join = true;
                   throw;
                 }
               }),
               Catch::Contains("the others go on"));
    CHECK(may_join == is_left_behind);
  }
}

TEST_CASE("a member whose run differs from the new coordinator's ends as with a loss") {
  // Not as with a wrong config: it has a state to save.
  Puppet puppet(0);
  puppet.send(UnknownSiteMessage{"a new start"});
  puppet.send(RefusedMessage{"another run", false});
  CHECK_THAT(error_of<PeerError>([&] { puppet.member.arrive({}, {}, "aa", {}); }),
             Catch::Contains("another run"));
}

TEST_CASE("a coordinator of an older term is not heard") {
  Puppet puppet(2);
  auto waiting = std::async(std::launch::async, [&] {
    return error_of<PeerError>([&] { puppet.member.arrive({}, {}, "aa", {}); });
  });
  puppet.send(PeerLostMessage{.site = "old", .reason = "an older one", .term = 1});
  puppet.send(PeerLostMessage{.site = "new", .reason = "the newest", .term = 2});
  CHECK(waiting.get() == "site new: the newest");
}

TEST_CASE("a coordinator forgets its run when a member tells it of a newer one") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  Actor site(ControlSocket::Role::kSite, coordinator.endpoint());
  RegisterMessage request;
  request.site = "s0";
  site.socket.send({encode(SiteMessage(request))});
  CHECK(std::holds_alternative<Welcome>(decode_coordinator_message(site.receive().front())));
  site.socket.send({encode(SiteMessage(HeartbeatMessage{0, 0, 0, "", 1, 9}))});
  // Until the site registers again, it is unknown.
  site.socket.send({encode(SiteMessage(HeartbeatMessage{0, 0, 0, "", 1, 9}))});
  CHECK(std::holds_alternative<UnknownSiteMessage>(
      decode_coordinator_message(site.receive().front())));
  wait_until_it_stands_by(coordinator);
}

TEST_CASE("a site that starts again still knows the newest term") {
  const TemporaryFolder folder;
  RealClock clock;
  write_file(folder / "term", R"({"term": 6})");
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock, folder / "journal");
  {
    Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock, folder / "term");
    CHECK(member.join({})->term == 7);
    member.leave(Outcome::kDone, "");
  }
  CHECK(Json::parse(read_file(folder / "term")) == Json{{"term", 7}});
  // It may join without it: what is lost is only the knowledge of coordinators before.
  for (const auto* damaged : {"7", "{\"tern\": 7}", "\xff"}) {
    write_file(folder / "term", damaged);
    LogCapture log;
    Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock, folder / "term");
    CHECK(read_file(folder / "term.damaged") == damaged);
    CHECK_THAT(log.text(), Catch::Contains("term.damaged") && Catch::Contains("may hear"));
  }
}

}  // namespace
}  // namespace farstep::wan
