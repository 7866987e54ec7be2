#include "wan/membership/coordinator.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <zmq.hpp>

#include "tests/support/catch.h"
#include "tests/wan/membership/parties.h"
#include "tests/wan/transport/run_ranks.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {
namespace {

// A peer that speaks ZeroMQ and says what it likes.
class Stranger {
 public:
  explicit Stranger(const std::string& endpoint)
      : socket_(ControlSocket::Role::kSite, endpoint, patient_deadlines()) {}
  void send(const ControlSocket::Frames& frames) { socket_.send(frames); }
  std::string receive() {
    while (true) {
      if (const auto received = socket_.receive()) return received->frames[0];
      socket_.wait(10);
    }
  }

 private:
  ControlSocket socket_;
};

TEST_CASE("a coordinator tells the port that it took") {
  RealClock clock;
  for (const std::string port : {"*", "0"}) {
    const Coordinator coordinator("tcp://127.0.0.1:" + port, served(1), patient_deadlines(), clock);
    CHECK_THAT(coordinator.endpoint(), Catch::StartsWith("tcp://127.0.0.1:"));
    CHECK(std::stoi(coordinator.endpoint().substr(16)) > 0);
  }
}

TEST_CASE("a malformed endpoint is a bad configuration") {
  RealClock clock;
  for (const std::string endpoint : {"nonsense", "tcp://127.0.0.1", "tcp://127.0.0.1:99999"}) {
    const auto error = error_of<ConfigError>(
        [&] { Coordinator(endpoint, served(1), patient_deadlines(), clock); });
    CHECK_THAT(error, Catch::Contains(endpoint));
  }
}

TEST_CASE("an endpoint that is in use or not there yet may be free at a later try") {
  RealClock clock;
  const Coordinator first(kAnyPort, served(1), patient_deadlines(), clock);
  for (const std::string& endpoint : {first.endpoint(), std::string("tcp://192.0.2.1:5000")}) {
    const auto error =
        error_of<PeerError>([&] { Coordinator(endpoint, served(1), patient_deadlines(), clock); });
    CHECK_THAT(error, Catch::Contains(endpoint));
  }
}

TEST_CASE("a site that ends without a word is noticed by its connection, long before its silence") {
  RealClock clock;
  auto deadlines = quick_deadlines();
  deadlines.lost_after_seconds = 3600;
  Coordinator coordinator(kAnyPort, served(1, deadlines), deadlines, clock);
  Member(coordinator.endpoint(), "s0", deadlines, clock).join({});
  REQUIRE(coordinator.wait_until_over(60));
  CHECK_THAT(coordinator.failure(), Catch::StartsWith("site s0: silent for"));
}

TEST_CASE("a coordinator that knows its visitors serves each under its own name, and no stranger") {
  RealClock clock;
  const auto always = [](std::optional<std::string> site) {
    return [site](const std::string& ip) {
      return ip == "127.0.0.1" ? site : std::optional<std::string>("an address of nobody");
    };
  };
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock, {}, {always("s0")});
  Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  member.join({});
  member.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(10));

  Coordinator other(kAnyPort, served(1), patient_deadlines(), clock, {}, {always("s1")});
  Member pretender(other.endpoint(), "s0", patient_deadlines(), clock);
  CHECK_THAT(error_of<ConfigError>([&] { pretender.join({}); }),
             Catch::Contains("site s0 registers with the key of site s1"));

  Coordinator closed(kAnyPort, served(1), patient_deadlines(), clock, {}, {always({})});
  auto deadlines = patient_deadlines();
  deadlines.join_seconds = 1;
  Member stranger(closed.endpoint(), "s0", deadlines, clock);
  CHECK_THAT(error_of<PeerError>([&] { stranger.join({}); }), Catch::Contains("does not answer"));
}

// With keys its ZeroMQ connection goes to this machine's end of the line, and does not break.
TEST_CASE("a site whose line its machine has closed is lost long before its silence") {
  RealClock clock;
  auto deadlines = quick_deadlines();
  deadlines.lost_after_seconds = 3600;
  Coordinator coordinator(
      kAnyPort, served(1, deadlines), deadlines, clock, {},
      {.site_at = [](const std::string&) { return std::optional<std::string>("s0"); },
       .has_closed = [](const std::string& site) { return site == "s0"; }});
  Stranger site(coordinator.endpoint());  // whose connection stays open
  RegisterMessage request;
  request.site = "s0";
  site.send({encode(request)});
  CHECK_THAT(site.receive(), Catch::Contains("welcome"));
  REQUIRE(coordinator.wait_until_over(60));
  CHECK_THAT(coordinator.failure(), Catch::StartsWith("site s0: silent for"));
}

TEST_CASE("garbage at the coordinator's port does not disturb a run") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  Stranger stranger(coordinator.endpoint());
  stranger.send({"garbage"});
  stranger.send({""});
  stranger.send({"two", "frames"});
  stranger.send({std::string(1 << 20, '[')});
  stranger.send({R"({"protocol": 19, "type": "put"})"});
  CHECK_THAT(stranger.receive(), Catch::Contains("key: is missing"));
  stranger.send(
      {R"({"protocol": 19, "type": "heartbeat", "sent_seconds": 1, "generation": 1, "term": 0})"});
  CHECK_THAT(stranger.receive(), Catch::Contains("unknown_site"));

  Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  member.join({});
  member.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(10));
}

// Sends `bytes` again and again. Returns how many of them went out before the coordinator closed
// the connection.
std::size_t sent_until_closed(const std::string& endpoint, const std::string& bytes) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // far above what sockets buffer
  const auto deadline = deadline_after(60);
  const int port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  const auto socket = connect_tcp(SocketAddress("127.0.0.1", port), deadline);
  std::size_t all = 0;
  while (all < kMostBytes) {
    pollfd entry{socket.fd(), POLLOUT, 0};
    ::poll(&entry, 1, milliseconds_until(deadline));
    const auto sent = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;
    all += static_cast<std::size_t>(sent);
  }
  return all;
}

TEST_CASE("bytes that begin no handshake end the connection and are not kept") {
  RealClock clock;
  const Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  std::string noise(std::size_t{1} << 20, '\0');
  std::mt19937 random(1);
  for (auto& byte : noise) byte = static_cast<char>(random());
  // "aaa...": to ZeroMQ a peer of its version 1, and then an endless message of small frames.
  for (const auto& bytes : {std::string(std::size_t{1} << 20, 'a'), noise}) {
    CHECK(sent_until_closed(coordinator.endpoint(), bytes) < std::size_t{64} << 20);
  }
}

TEST_CASE("a silent connection ends when the time for its handshake has passed") {
  RealClock clock;
  auto deadlines = patient_deadlines();
  deadlines.connect_seconds = 0.1;
  const Coordinator coordinator(kAnyPort, served(1), deadlines, clock);
  const int port = std::stoi(coordinator.endpoint().substr(16));
  const auto deadline = deadline_after(30);
  const auto socket = connect_tcp(SocketAddress("127.0.0.1", port), deadline);
  // The greeting of the coordinator has no end of line.
  CHECK_THROWS_WITH(receive_line(socket, deadline), Catch::Contains("closed"));
}

TEST_CASE("peers of ZeroMQ without Farstep's handshake are not heard") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  zmq::context_t context;
  for (const std::string name : {"", "stranger"}) {
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 500);
    if (!name.empty()) {
      socket.set(zmq::sockopt::plain_username, name);
      socket.set(zmq::sockopt::plain_password, name);
    }
    socket.connect(coordinator.endpoint());
    socket.send(zmq::str_buffer(R"({"protocol": 6, "type": "put"})"));
    zmq::message_t answer;
    CHECK_FALSE(socket.recv(answer));
  }
}

// Sends the same message without end, over several connections.
class Flood {
 public:
  Flood(const std::string& endpoint, const std::string& message) {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([endpoint, message](const std::stop_token& stop) {
        ControlSocket socket(ControlSocket::Role::kSite, endpoint, patient_deadlines());
        while (!stop.stop_requested()) socket.send({message});
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

// The coordinator served as long as messages came, and did nothing else.
TEST_CASE("a flood of messages stops neither the run nor the coordinator's clock") {
  RealClock clock;
  const auto deadlines = quick_deadlines();
  Coordinator coordinator(kAnyPort, served(1, deadlines), deadlines, clock);
  // A message of a site's form, which gets an answer.
  const Flood flood(coordinator.endpoint(), encode(HeartbeatMessage{}));
  Member(coordinator.endpoint(), "s0", deadlines, clock).join({});
  // The site has ended without a word, which only the time shows.
  REQUIRE(coordinator.wait_until_over(60));
  CHECK_THAT(coordinator.failure(), Catch::StartsWith("site s0: silent for"));
}

TEST_CASE("what a site says on leaving reaches the others as one short line") {
  Party party(2, patient_deadlines(), 2);
  party.members[1]->leave(Outcome::kFailed, "\x1b]0;owned\x07\n" + std::string(300'000, 'x'));
  while (party.coordinator->failure().empty()) party.coordinator->wait_until_over(0.01);
  const auto failure = party.coordinator->failure();
  CHECK_THAT(failure, Catch::Contains("failed: \\x1b]0;owned\\x07 xxx"));
  CHECK(failure.size() < 1100);
}

// Stands for a machine on which each message takes long.
class SlowClock : public RealClock {
 public:
  double unix_seconds() const override {
    ++calls;
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return RealClock::unix_seconds();
  }
  mutable std::atomic<int> calls = 0;
  std::atomic<bool> is_slow = true;
};

// After half a heartbeat it looked for silent sites, though not every connection had had its turn.
TEST_CASE("a site is not silent while its messages wait behind those of many others") {
  RealClock clock;
  SlowClock slow;
  auto deadlines = quick_deadlines();
  deadlines.coordinator_lost_after_seconds = 60;
  Coordinator coordinator(kAnyPort, served(1, deadlines), deadlines, slow);
  Member member(coordinator.endpoint(), "s0", deadlines, clock);
  member.join({});
  {
    // A turn of all takes longer than the time after which a silent site is lost.
    std::vector<std::unique_ptr<Flood>> floods;
    for (int i = 0; i < 10; ++i) {
      floods.push_back(std::make_unique<Flood>(coordinator.endpoint(), encode(HeartbeatMessage{})));
    }
    const int before = slow.calls;
    while (slow.calls < before + 100) CHECK_FALSE(coordinator.wait_until_over(0.1));
    slow.is_slow = false;
  }
  CHECK(coordinator.failure().empty());
  CHECK_FALSE(member.has_failed());
  member.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(60));
}

TEST_CASE("a site of the run may send what a stranger may not") {
  RealClock clock;
  auto deadlines = patient_deadlines();
  // Requests are repeated with every heartbeat, and a sanitizer takes longer to read this one.
  deadlines.heartbeat_seconds = 2;
  Coordinator coordinator(kAnyPort, served(1, deadlines), deadlines, clock);
  Member member(coordinator.endpoint(), "s0", deadlines, clock);
  member.join({});
  const std::string value(300'000, 'x');
  member.put("a", value);
  CHECK(member.get("a") == value);
  member.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(10));
}

std::string registration_of(const std::string& site) {
  RegisterMessage request;
  request.site = site;
  return encode(request);
}

TEST_CASE("a connection that brings what is no message is closed, and others are not") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  Member member(coordinator.endpoint(), "s0", patient_deadlines(), clock);
  member.join({});
  for (const std::string& message :
       {std::string("garbage"), std::string(R"({"protocol": 19, "type": "put"})"),
        registration_of("a site of another run"), registration_of(std::string(200'000, 'x'))}) {
    // Speaks ZeroMQ, does not connect again, and tells of the end of its connection.
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::reconnect_ivl, -1);
    socket.set(zmq::sockopt::plain_username, "farstep");
    socket.set(zmq::sockopt::plain_password, "farstep");
    REQUIRE(::zmq_socket_monitor(socket.handle(), "inproc://ends", ZMQ_EVENT_DISCONNECTED) == 0);
    zmq::socket_t ends(context, zmq::socket_type::pair);
    ends.set(zmq::sockopt::rcvtimeo, 30'000);
    ends.connect("inproc://ends");
    socket.connect(coordinator.endpoint());
    for (int i = 0; i < 10; ++i) socket.send(zmq::buffer(message));
    zmq::message_t event;
    CHECK(ends.recv(event));
    ::zmq_socket_monitor(socket.handle(), nullptr, 0);
  }
  CHECK_FALSE(member.has_failed());
  member.leave(Outcome::kDone, "");
  CHECK(coordinator.wait_until_over(10));
}

TEST_CASE("another protocol version is refused with both versions") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1), patient_deadlines(), clock);
  Stranger stranger(coordinator.endpoint());
  stranger.send({R"({"protocol": 1, "type": "register", "site": "s0"})"});
  CHECK_THAT(stranger.receive(),
             Catch::Contains(
                 fmt::format("of protocol 1, this process speaks protocol {}", kProtocolVersion)));
}

TEST_CASE("a coordinator is over when all sites have left and not before") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(2), patient_deadlines(), clock);
  CHECK_FALSE(coordinator.wait_until_over(0));
  run_ranks(2, [&](int i) {
    Member member(coordinator.endpoint(), "s" + std::to_string(i), patient_deadlines(), clock);
    member.join({});
    member.leave(Outcome::kDone, "");
  });
  CHECK(coordinator.wait_until_over(10));
  CHECK(coordinator.failure().empty());
}

TEST_CASE("a coordinator whose sites are lost is over and tells whom it lost") {
  RealClock clock;
  Coordinator coordinator(kAnyPort, served(1, quick_deadlines()), quick_deadlines(), clock);
  Member(coordinator.endpoint(), "s0", quick_deadlines(), clock).join({});
  CHECK(coordinator.wait_until_over(10));
  CHECK_THAT(coordinator.failure(), Catch::StartsWith("site s0: silent for"));
}

}  // namespace
}  // namespace farstep::wan
