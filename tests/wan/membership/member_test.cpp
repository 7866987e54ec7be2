#include "wan/membership/member.h"

#include <atomic>
#include <future>
#include <memory>

#include "tests/support/catch.h"
#include "tests/wan/membership/parties.h"
#include "tests/wan/transport/cuttable_link.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep::wan {
namespace {

// What a site does in a run of three rounds; the sum of all steps it is told of.
int64_t take_part(Member& member, int i, int sites) {
  const auto welcome = member.join({});
  member.put("address/" + std::to_string(i), std::string("\0\xff", 2) + std::to_string(i));
  int64_t steps = welcome->site_id == i && welcome->run == run_of(sites) ? 0 : -1000000;
  for (int j = 0; j < sites; ++j) {
    const auto value = member.get("address/" + std::to_string(j));
    if (value != std::string("\0\xff", 2) + std::to_string(j)) steps -= 1000000;
  }
  for (int64_t round = welcome->start_syncs + 1; round <= 3; ++round) {
    member.set_activity(round, 0, "training");
    const auto go = member.arrive({.round = round}, {.work = {10 + i, 1, 1}}, "aa", {});
    for (const auto& contribution : go->contributions) steps += contribution.work.steps;
    member.vote({.round = round}, "bb", {});
    member.throw_if_failed();
    member.report({.round = round});
  }
  member.leave(Outcome::kDone, "");
  return steps;
}

TEST_CASE("any number of sites goes through a run together") {
  for (const int sites : {1, 2, 4}) {
    RealClock clock;
    Coordinator coordinator(kAnyPort, served(sites), patient_deadlines(), clock);
    const auto steps = run_ranks(sites, [&](int i) {
      Member member(coordinator.endpoint(), name_of_site(i), patient_deadlines(), clock);
      return take_part(member, i, sites);
    });
    const int64_t steps_of_a_round = 10 * sites + sites * (sites - 1) / 2;
    CHECK(steps == std::vector<int64_t>(sites, 3 * steps_of_a_round));
    CHECK(coordinator.wait_until_over(10));
    CHECK(coordinator.failure().empty());
  }
}

TEST_CASE("a site may come before its coordinator") {
  RealClock clock;
  std::string endpoint;
  {
    const Coordinator finds_a_port(kAnyPort, served(1), patient_deadlines(), clock);
    endpoint = finds_a_port.endpoint();
  }
  Member member(endpoint, "s0", patient_deadlines(), clock);
  auto joined = std::async(std::launch::async, [&] { return member.join({}); });
  const Coordinator coordinator(endpoint, served(1), patient_deadlines(), clock);
  CHECK(joined.get()->sites == std::vector<std::string>{"s0"});
  member.leave(Outcome::kDone, "");
}

// As after an outage, in which TCP repeats what was lost ever more rarely.
TEST_CASE("a site makes its connection anew if nothing comes on it") {
  ControlSocket coordinator(ControlSocket::Role::kCoordinator, kAnyPort, patient_deadlines());
  CuttableLink link(std::stoi(coordinator.endpoint().substr(16)));
  const auto next = [&] {
    std::optional<ControlSocket::Received> received;
    while (!(received = coordinator.receive())) coordinator.wait(10);
    return received->frames;
  };
  // By a name, since the lines of this machine's own addresses do not fail.
  ControlSocket site(ControlSocket::Role::kSite,
                     fmt::format("tcp://localhost:{}", link.address().port()), patient_deadlines());
  site.send({"first"});
  const auto first = next();
  CHECK(first.at(1) == "first");
  link.hold(true);
  std::this_thread::sleep_for(std::chrono::seconds(8));  // the length of the outage itself
  link.hold(false);
  const auto deadline = deadline_after(60);
  std::vector<std::string> broken;
  while (broken.empty() && std::chrono::steady_clock::now() < deadline) {
    coordinator.wait(0.1);
    broken = coordinator.take_broken();
  }
  CHECK(broken == std::vector{first.at(0)});
  site.send({"second"});
  CHECK(next() == ControlSocket::Frames{first.at(0), "second"});
}

TEST_CASE("a connection that is cut and made again loses nothing") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(2), patient_deadlines(), clock);
  CuttableLink link(std::stoi(coordinator.endpoint().substr(16)));
  Member near(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  Member far(link.endpoint(), "s1", patient_deadlines(), clock);
  auto joined = std::async(std::launch::async, [&] { return near.join({}); });
  far.join({});
  joined.get();
  for (int64_t round = 1; round <= 5; ++round) {
    const auto key = "key/" + std::to_string(round);
    auto there = std::async(std::launch::async, [&] {
      far.arrive({.round = round}, {}, "aa", {});
      far.vote({.round = round}, "bb", {});
      return far.get(key);
    });
    link.cut();
    near.arrive({.round = round}, {}, "aa", {});
    link.cut();
    near.vote({.round = round}, "bb", {});
    link.cut();
    near.put(key, "value");
    link.cut();
    CHECK(there.get() == "value");
  }
  far.leave(Outcome::kDone, "");
  near.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(10));
  CHECK(coordinator.failure().empty());
}

TEST_CASE("sites share a value each in one step") {
  Party party(3, patient_deadlines());
  const auto shared = run_ranks(
      3, [&](int i) { return share(*party.members[i], "where", "at " + std::to_string(i), i, 3); });
  for (const auto& values : shared) {
    CHECK(values == std::vector<std::string>{"at 0", "at 1", "at 2"});
  }
  // Several values in the order that is asked for; one of them comes later.
  auto waiting = std::async(std::launch::async, [&] {
    return party.members[0]->put_and_get("k/0", "x", {"k/1", "where/2", "where/1"});
  });
  party.members[1]->put("k/1", "y");
  CHECK(waiting.get() == std::vector<std::string>{"y", "at 2", "at 1"});
}

TEST_CASE("a wait for several values ends when a site that has not put its own is lost") {
  Party party(3, quick_deadlines(), 2);
  auto waiting = std::async(std::launch::async, [&] {
    try {
      party.members[0]->put_and_get("k/0", "x", {"k/0", "k/1", "k/2"});
    } catch (const PeerError& error) {
      return error.site();
    }
    return std::string("nobody");
  });
  party.members[1]->put("k/1", "y");
  party.members[2].reset();
  CHECK(waiting.get() == "s2");
}

TEST_CASE("a site whose run differs is refused with the JSON path") {
  RealClock clock;
  const Coordinator coordinator(kAnyPort, served(2), patient_deadlines(), clock);
  Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  JoinRequest request;
  request.run = run_of(2);
  (*request.run)["sites"][1] = "s7";
  const auto error = error_of<ConfigError>([&] { member.join(request); });
  CHECK_THAT(error, Catch::Contains("refused site s0"));
  CHECK_THAT(error, Catch::Contains("sites[1]: \"s7\" here, \"s1\" there"));
}

TEST_CASE("a refusal that a later try may mend is no wrong configuration") {
  RealClock clock;
  const Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  Member first(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  first.join({});
  Member second(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  CHECK_THAT(error_of<PeerError>([&] { second.join({}); }), Catch::Contains("the run has begun"));
  first.leave(Outcome::kDone, "");
}

TEST_CASE("sites that do not come are named when the patience ends") {
  RealClock clock;
  Deadlines deadlines = patient_deadlines();
  deadlines.join_seconds = 0.3;
  const Coordinator coordinator(kAnyPort, served(3), deadlines, clock);
  Member member(coordinator.endpoint(), "s1", deadlines, clock);
  CHECK_THAT(error_of<PeerError>([&] { member.join({}); }),
             Catch::Contains("within 0.3 s") && Catch::Contains("still waits for s0, s2"));
}

TEST_CASE("a coordinator that is not there is named when the patience ends") {
  RealClock clock;
  Deadlines deadlines = patient_deadlines();
  deadlines.join_seconds = 0.1;
  Member member("tcp://127.0.0.1:1", "s0", deadlines, clock);
  CHECK_THAT(error_of<PeerError>([&] { member.join({}); }),
             Catch::Contains("coordinator at tcp://127.0.0.1:1 does not answer"));
  member.leave(Outcome::kFailed, "");
}

TEST_CASE("a malformed coordinator endpoint is a bad configuration") {
  RealClock clock;
  CHECK_THAT(error_of<ConfigError>([&] { Member("nonsense", "s0", patient_deadlines(), clock); }),
             Catch::Contains("nonsense"));
}

TEST_CASE("of several coordinators the one of another protocol version is named") {
  RealClock clock;
  const ControlSocket first(ControlSocket::Role::kCoordinator, kAnyPort, patient_deadlines());
  ControlSocket other(ControlSocket::Role::kCoordinator, kAnyPort, patient_deadlines());
  Member member({{first.endpoint(), {}}, {other.endpoint(), {}}}, "s0", patient_deadlines(), clock);
  auto error = std::async(std::launch::async,
                          [&] { return error_of<ConfigError>([&] { member.join({}); }); });
  std::optional<ControlSocket::Received> request;
  while (!(request = other.receive())) other.wait(10);
  other.send({request->frames[0], R"({"protocol": 1, "type": "welcome"})"});
  CHECK_THAT(error.get(), Catch::StartsWith("coordinator at " + other.endpoint()) &&
                              Catch::Contains("use the same version of Farstep"));
}

TEST_CASE("a coordinator of another protocol version is refused") {
  RealClock clock;
  ControlSocket other(ControlSocket::Role::kCoordinator, kAnyPort, patient_deadlines());
  Member member(other.endpoint(), "s0", patient_deadlines(), clock);
  auto error = std::async(std::launch::async,
                          [&] { return error_of<ConfigError>([&] { member.join({}); }); });
  std::optional<ControlSocket::Received> request;
  while (!(request = other.receive())) other.wait(10);
  other.send({request->frames[0], R"({"protocol": 1, "type": "welcome"})"});
  CHECK_THAT(error.get(), Catch::Contains("use the same version of Farstep"));
}

TEST_CASE("a stop request ends the wait for the others") {
  RealClock clock;
  const Coordinator coordinator(kAnyPort, served(2), patient_deadlines(), clock);
  std::stop_source stop;
  Member first(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  auto joining =
      std::async(std::launch::async, [&] { return first.join({}, stop.get_token()).has_value(); });
  stop.request_stop();
  CHECK_FALSE(joining.get());
  first.leave(Outcome::kInterrupted, "");

  Party party(2, patient_deadlines());
  std::stop_source stop_arrival;
  auto arriving = std::async(std::launch::async, [&] {
    return party.members[0]->arrive({}, {}, "aa", stop_arrival.get_token()).has_value();
  });
  stop_arrival.request_stop();
  CHECK_FALSE(arriving.get());
  party.members[0]->leave(Outcome::kInterrupted, "Ctrl-C");
  CHECK_THAT(error_of<PeerError>([&] { party.members[1]->arrive({}, {}, "aa", {}); }),
             Catch::Contains("site s0: it left the run: interrupted: Ctrl-C"));
}

TEST_CASE("a site that vanishes is named to the others in time") {
  Party party(3, quick_deadlines());
  std::promise<std::string> heard;
  std::atomic<int> calls = 0;
  party.members[0]->on_peer_lost(1, [&](const std::string& site, const std::string& reason) {
    if (++calls == 1) heard.set_value(site + " | " + reason);
  });
  auto waiting = std::async(std::launch::async, [&]() -> std::string {
    try {
      party.members[1]->arrive({}, {}, "aa", {});
    } catch (const PeerError& error) {
      return error.site();
    }
    return "nobody";
  });
  party.members[2]->set_activity(0, 7, "training");
  const double start_seconds = party.clock.now_seconds();
  party.members[2].reset();
  CHECK_THAT(heard.get_future().get(), Catch::StartsWith("s2 | site s2: silent for"));
  CHECK(waiting.get() == "s2");
  CHECK(party.clock.now_seconds() - start_seconds < 3);
  CHECK_THROWS_AS(party.members[0]->throw_if_failed(), PeerError);
  CHECK_THROWS_AS(party.members[0]->vote({}, "bb", {}), PeerError);
  CHECK_THROWS_AS(party.members[0]->get("k"), PeerError);
  CHECK_THROWS_AS(party.members[0]->put("k", "v"), PeerError);
  party.members[0]->leave(Outcome::kFailed, "");
  party.members[1]->leave(Outcome::kFailed, "");
  CHECK(party.coordinator->wait_until_over(10));
  CHECK(calls == 1);
}

TEST_CASE("a listener that comes after the loss is told as well") {
  Party party(2, patient_deadlines());
  party.members[1]->leave(Outcome::kFailed, "out of memory");
  CHECK_THROWS_AS(party.members[0]->arrive({}, {}, "aa", {}), PeerError);
  std::promise<std::string> heard;
  party.members[0]->on_peer_lost(
      1, [&](const std::string& site, const std::string&) { heard.set_value(site); });
  CHECK(heard.get_future().get() == "s1");
}

TEST_CASE("a coordinator that dies is noticed by every site in time") {
  Party party(2, quick_deadlines());
  const double start_seconds = party.clock.now_seconds();
  party.coordinator.reset();
  const auto errors = run_ranks(2, [&](int i) -> std::string {
    try {
      party.members[i]->arrive({}, {}, "aa", {});
    } catch (const PeerError& error) {
      return error.site() + "|" + error.what();
    }
    return "nothing";
  });
  CHECK(party.clock.now_seconds() - start_seconds < 3);
  for (const auto& error : errors) {
    CHECK_THAT(error, Catch::StartsWith("|coordinator at tcp://127.0.0.1:") &&
                          Catch::Contains("silent for more than 1"));
  }
  for (auto& member : party.members) member->leave(Outcome::kFailed, "");
  CHECK(party.clock.now_seconds() - start_seconds < 6);
}

TEST_CASE("a coordinator that does not know its only site goes on with it") {
  Party party(1, patient_deadlines());
  const auto endpoint = party.coordinator->endpoint();
  party.coordinator.reset();
  party.coordinator =
      std::make_unique<Coordinator>(endpoint, served(1), patient_deadlines(), party.clock);
  CHECK(party.members[0]->arrive({}, {}, "aa", {})->generation > 1);
}

TEST_CASE("weights that differ are a defect that names the sites") {
  Party party(2, patient_deadlines());
  const auto errors = run_ranks(2, [&](int i) {
    return error_of<InternalError>([&] {
      party.members[i]->arrive({}, {}, "aa", {});
      party.members[i]->vote({}, "b" + std::to_string(i), {});
    });
  });
  for (const auto& error : errors) {
    CHECK(error == "theta_global differs after the exchange of round 1: s0 (b0), s1 (b1)");
  }
}

TEST_CASE("after its goodbye a member refuses further calls") {
  Party party(1, patient_deadlines());
  party.members[0]->leave(Outcome::kDone, "");
  CHECK_THROWS_AS(party.members[0]->arrive({}, {}, "aa", {}), InternalError);
}

TEST_CASE("the clock offset is the coordinator's time minus the site's") {
  class EarlyClock : public RealClock {
   public:
    double unix_seconds() const override { return RealClock::unix_seconds() + 100; }
  };
  EarlyClock early;
  RealClock clock;
  const Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), early);
  Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  member.join({});
  CHECK(member.clock_offset_seconds() == Approx(100).margin(1));
  member.leave(Outcome::kDone, "");
}

}  // namespace
}  // namespace farstep::wan
