// A member whose coordinator is the test.
#pragma once

#include <filesystem>
#include <future>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "tests/wan/membership/parties.h"

namespace farstep::wan {

// A process of a test that takes the part of a coordinator or of a site.
struct Actor {
  Actor(ControlSocket::Role role, const std::string& endpoint)
      : socket(role, endpoint, patient_deadlines()) {}
  ControlSocket::Frames receive() {
    while (true) {
      if (auto received = socket.receive()) return received->frames;
      socket.wait(10);
    }
  }

  ControlSocket socket;
};

// A member of a run of its own, whose coordinator says what the test wants.
struct Puppet {
  // `deadlines` are those of the run.
  explicit Puppet(int64_t term, std::filesystem::path term_file = {},
                  const Deadlines& deadlines = patient_deadlines())
      : member(coordinator.socket.endpoint(), "s0", patient_deadlines(), clock,
               std::move(term_file)) {
    auto joined = std::async(std::launch::async, [&] { return member.join({}).has_value(); });
    connection = coordinator.receive().front();
    send(Welcome{.run = served(1, deadlines).config,
                 .site_id = 0,
                 .sites = {"s0"},
                 .generation = 1,
                 .start_syncs = 0,
                 .first_sites = {{"s0", Json()}},
                 .term = term});
    send(HeartbeatAckMessage{.sent_seconds = 0, .coordinator_seconds = 0, .term = term});
    REQUIRE(joined.get());
  }
  void send(const CoordinatorMessage& message) {
    coordinator.socket.send({connection, encode(message)});
  }
  // Returns the member's next message of this kind, and drops those before it.
  template <typename Message>
  Message next() {
    while (true) {
      const auto message = decode_site_message(coordinator.receive().back());
      if (const auto* found = std::get_if<Message>(&message)) return *found;
    }
  }

  RealClock clock;
  Actor coordinator{ControlSocket::Role::kCoordinator, kAnyPort};
  Member member;
  std::string connection;
};

}  // namespace farstep::wan
