// The coordinator's whole logic under any sequence of messages: from sites, from a site that lies,
// and from a connection that is no site's. It may be restarted at any time, with its state.

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "tests/fuzz/fuzz_input.h"
#include "wan/roster/roster.h"

using namespace farstep;

namespace {

// Makes messages of the input's bytes. Mostly they fit the run, or no input gets beyond joining.
class Sender {
 public:
  explicit Sender(FuzzedDataProvider& input) : input_(input) {}

  wan::SiteMessage message() {
    switch (input_.ConsumeIntegralInRange<int>(0, 10)) {
      case 0:
        return registration();
      case 1:
        return wan::PutMessage{text(), text()};
      case 2:
        return wan::GetMessage{text()};
      case 3:
        return wan::HeartbeatMessage{seconds(), number(), number(), text(), number(), number()};
      case 4:
        return wan::ArriveMessage{number(), number(), number(), contribution(), text()};
      case 5:
        return wan::VoteMessage{number(), number(), number(), text()};
      case 6:
        return wan::MetricsMessage{number(), seconds(), number(), seconds(), seconds()};
      case 7:
        return wan::SuspectMessage{number(), text()};
      case 8:
        return wan::FetchMessage{"10.0.0.1", number(), text()};
      case 9:
        return wan::OfferMessage{text(), number(), seconds(), text()};
      default:
        return wan::LeaveMessage{static_cast<Outcome>(input_.ConsumeIntegralInRange<std::size_t>(
                                     0, enum_names(Outcome{}).size() - 1)),
                                 text()};
    }
  }
  std::string text() {
    static const std::string kTexts[] = {"a", "b", "c", "", "\xff"};
    return input_.PickValueInArray(kTexts);
  }
  // Routing ids of ZeroMQ are bytes, and never empty.
  std::string connection() {
    static const std::string kConnections[] = {"a", "b", "c", "d", "\xff"};
    return input_.PickValueInArray(kConnections);
  }
  double seconds() { return input_.PickValueInArray({0.0, 1.0, -1.0, 1e9, 1e308, 1e-308}); }

 private:
  int64_t number() {
    return input_.PickValueInArray({int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{-1},
                                    int64_t{1'000'000'000'000'000},
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min()});
  }
  wan::RegisterMessage registration() {
    wan::RegisterMessage message;
    message.site = text();
    message.term = number();
    message.generation = number();
    message.committed_round = number();
    message.committed_fragment = number();
    message.resume =
        input_.PickValueInArray({wan::Resume::kNever, wan::Resume::kAlways, wan::Resume::kAuto});
    while (input_.ConsumeBool()) {
      auto& state = message.states.emplace_back(wan::OfferedState{number(), text()});
      if (input_.ConsumeBool()) state.round = number();
      while (input_.ConsumeBool()) state.members.push_back(text());
    }
    if (input_.ConsumeBool()) message.facts["data"] = text();
    if (input_.ConsumeBool()) message.run = Json{{"name", text()}};
    return message;
  }
  wan::Contribution contribution() {
    wan::Contribution contribution;
    contribution.work = {number(), number(), number()};
    contribution.fragments = number();
    return contribution;
  }

  FuzzedDataProvider& input_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  Sender sender(input);
  wan::ServedRun run{.config = {{"name", "a"}}, .sites = {"a", "b"}, .fragments = 1};
  if (input.ConsumeBool()) run.min_sites = 1;  // then one goes on without the other
  auto roster = std::make_unique<wan::Roster>(run, wan::Deadlines{});
  double now_seconds = 0;
  // Enough for several rounds of all sites; more messages would only make a run of the input slow.
  for (int i = 0; i < 100 && input.remaining_bytes() > 0; ++i) {
    std::vector<wan::Outgoing> outgoing;
    const auto what = input.ConsumeIntegralInRange<int>(0, 31);
    if (what <= 1) {
      // A clock that no message sets: it stays in range.
      now_seconds += std::clamp(sender.seconds(), 0.0, 1e9);
      outgoing = roster->tick(now_seconds);
    } else if (what == 2) {
      auto state = read_json<wan::RosterState>(to_json(roster->state()), "the state");
      state.require_fits(run);
      ++state.term;
      roster = std::make_unique<wan::Roster>(run, wan::Deadlines{}, state, now_seconds);
    } else {
      const auto connection = sender.connection();
      // As a message comes in: what the decoder refuses never reaches the roster.
      accept_or_refuse([&] {
        const auto message = wan::decode_site_message(encode(sender.message()));
        outgoing = roster->receive(connection, message, now_seconds);
      });
    }
    // Whatever the roster answers, a site can read.
    for (const auto& [connection, message] : outgoing)
      wan::decode_coordinator_message(encode(message));
    static_cast<void>(roster->is_over());
  }
  return 0;
}
