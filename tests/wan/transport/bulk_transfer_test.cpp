#include "wan/transport/bulk_transfer.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <list>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::wan {
namespace {

// A loaded machine may hold up a thread for seconds. What fails does so at this limit; what works
// does not wait for it.
constexpr double kPatienceSeconds = 30;
// For sides that would wait for as long if a stop or another connection did not end that.
constexpr double kFarSeconds = 110;

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::vector<std::byte> content(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 24);
  return bytes;
}

// Receives all of `got` on another thread, and confirms the end.
std::future<bool> receive_all(BulkReceiver& receiver, std::span<std::byte> got) {
  return std::async(std::launch::async, [&receiver, got] {
    const bool has_all = receiver.receive(got, {});
    receiver.finish();
    return has_all;
  });
}

// Connects to the receiver and does `work` with the socket.
template <typename Work>
void visit(const BulkAddress& address, Work&& work) {
  const auto socket =
      connect_tcp(SocketAddress(address.ip, address.port), deadline_after(kPatienceSeconds));
  work(socket);
}

TEST_CASE("parts of all sizes arrive as one message") {
  for (const std::size_t size : {1, 7, 65536, 5'000'003}) {
    const auto bytes = content(size);
    BulkReceiver receiver("127.0.0.1", 0, 20, 20);
    auto sent = std::async(std::launch::async, [&] {
      const std::span<const std::byte> all = bytes;
      const std::array parts = {all.first(size / 3), all.subspan(size / 3)};
      return send_bulk(receiver.address(), parts, {.stall_seconds = 20}, {});
    });
    std::vector<std::byte> got(size);
    const std::span<std::byte> whole = got;
    CHECK(receiver.receive(whole.first(size / 2), {}));
    CHECK(receiver.receive(whole.subspan(size / 2), {}));
    receiver.finish();
    CHECK(sent.get());
    CHECK(got == bytes);
  }
}

TEST_CASE("a transfer goes on where its connection broke, whoever else connects") {
  const auto bytes = content(300'000);
  BulkReceiver receiver("127.0.0.1", 0, 20, 20);
  const auto address = receiver.address();
  std::vector<std::byte> got(bytes.size());
  auto received = receive_all(receiver, got);
  // Strangers: one that says nothing, one with another token, and one that speaks HTTP.
  visit(address, [](const Socket&) {});
  visit(address, [](const Socket& socket) {
    send_line(socket, "farstep-bulk 0123", deadline_after(kPatienceSeconds));
    CHECK_THROWS_AS(receive_line(socket, deadline_after(kPatienceSeconds)), TcpError);
  });
  visit(address, [](const Socket& socket) {
    send_line(socket, "GET / HTTP/1.1", deadline_after(kPatienceSeconds));
    CHECK_THROWS_AS(receive_line(socket, deadline_after(kPatienceSeconds)), TcpError);
  });
  // Senders that break off after some bytes.
  std::size_t offset = 0;
  for (const std::size_t piece : {1, 1000, 0, 70'000}) {
    visit(address, [&](const Socket& socket) {
      send_line(socket, "farstep-bulk " + address.token, deadline_after(kPatienceSeconds));
      offset = std::stoul(receive_line(socket, deadline_after(kPatienceSeconds)));
      send(socket.fd(), bytes.data() + offset, piece, MSG_NOSIGNAL);
    });
  }
  CHECK(offset >= 1001);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  CHECK(send_bulk(address, parts, {.stall_seconds = 20}, {}));
  CHECK(received.get());
  CHECK(got == bytes);
}

// Takes the sender's next connection at a listener of the test's own, and reads its first line.
Socket take_sender(const Socket& listener, const std::string& token) {
  pollfd entry{listener.fd(), POLLIN, 0};
  REQUIRE(::poll(&entry, 1, static_cast<int>(1000 * kPatienceSeconds)) == 1);
  Socket sender(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  REQUIRE(receive_line(sender, deadline_after(kPatienceSeconds)) == "farstep-bulk " + token);
  return sender;
}

TEST_CASE("visitors that stay silent do not hold up the sender") {
  const auto bytes = content(300'000);
  BulkReceiver receiver("127.0.0.1", 0, kFarSeconds, kFarSeconds);
  const auto address = receiver.address();
  // More of them than the receiver keeps, all before the sender.
  std::list<Socket> silent;
  for (int i = 0; i < 10; ++i) {
    silent.push_back(
        connect_tcp(SocketAddress(address.ip, address.port), deadline_after(kPatienceSeconds)));
  }
  std::vector<std::byte> got(bytes.size());
  auto received = receive_all(receiver, got);
  for (int i = 0; i < 100; ++i) {
    silent.push_back(
        connect_tcp(SocketAddress(address.ip, address.port), deadline_after(kPatienceSeconds)));
  }
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  // Far less than they would take one after the other.
  CHECK(send_bulk(address, parts, {.stall_seconds = kPatienceSeconds}, {}));
  CHECK(received.get());
  CHECK(got == bytes);
}

TEST_CASE("visitors that come on and on do not put off the deadline") {
  BulkReceiver receiver("127.0.0.1", 0, 0.3, 0.3);
  const auto address = receiver.address();
  std::atomic<bool> is_over = false;
  std::thread strangers([&] {
    std::list<Socket> silent;
    while (!is_over) {
      try {
        silent.push_back(connect_tcp(SocketAddress(address.ip, address.port), deadline_after(1)));
      } catch (const TcpError&) {
        // The queue of the listener is full.
      }
      if (silent.size() > 50) silent.pop_front();
    }
  });
  std::byte byte;
  CHECK_THROWS_AS(receiver.receive({&byte, 1}, {}), PeerError);
  is_over = true;
  strangers.join();
}

TEST_CASE("a newer connection with the token takes over from one that fell silent") {
  const auto bytes = content(300'000);
  BulkReceiver receiver("127.0.0.1", 0, kFarSeconds, kFarSeconds);
  const auto address = receiver.address();
  std::vector<std::byte> got(bytes.size());
  auto received = receive_all(receiver, got);
  // Its line was cut without a word: it stays open, and nothing comes.
  const auto cut =
      connect_tcp(SocketAddress(address.ip, address.port), deadline_after(kPatienceSeconds));
  send_line(cut, "farstep-bulk " + address.token, deadline_after(kPatienceSeconds));
  CHECK(receive_line(cut, deadline_after(kPatienceSeconds)) == "0");
  REQUIRE(send(cut.fd(), bytes.data(), 1000, MSG_NOSIGNAL) == 1000);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  // Far less than the receiver would wait for the one that is silent.
  CHECK(send_bulk(address, parts, {.stall_seconds = kPatienceSeconds}, {}));
  CHECK(received.get());
  CHECK(got == bytes);
}

TEST_CASE("a sender whose bytes nobody takes connects anew before it gives up") {
  const auto listener = listen_tcp(SocketAddress("127.0.0.1", 0));
  const BulkAddress address{"127.0.0.1", SocketAddress::local_of(listener.fd())->port(), "token"};
  const auto bytes = content(50'000'000);
  std::stop_source stop;
  auto sent = std::async(std::launch::async, [&] {
    const std::array<std::span<const std::byte>, 1> parts = {bytes};
    // It connects anew after a quarter of that.
    return send_bulk(address, parts, {.stall_seconds = 12}, stop.get_token());
  });
  const auto first = take_sender(listener, address.token);
  send_line(first, "0", deadline_after(kPatienceSeconds));
  const auto second = take_sender(listener, address.token);
  stop.request_stop();
  CHECK_FALSE(sent.get());
}

TEST_CASE("a sender without a receiver and a receiver without a sender end by their deadline") {
  BulkAddress gone;
  {
    BulkReceiver receiver("127.0.0.1", 0, 0.2, 0.2);
    gone = receiver.address();
    std::byte byte;
    CHECK_THROWS_AS(receiver.receive({&byte, 1}, {}), PeerError);
  }
  const std::array<std::span<const std::byte>, 0> parts = {};
  CHECK_THROWS_AS(send_bulk(gone, parts, {.stall_seconds = 0.3}, {}), PeerError);
}

TEST_CASE("a stop ends both sides at once") {
  std::stop_source stop;
  BulkReceiver receiver("127.0.0.1", 0, kFarSeconds, kFarSeconds);
  std::vector<std::byte> got(10);
  auto received =
      std::async(std::launch::async, [&] { return receiver.receive(got, stop.get_token()); });
  // A receiver that takes nothing fills the sender's buffers.
  BulkReceiver idle("127.0.0.1", 0, kFarSeconds, kFarSeconds);
  const auto bytes = content(50'000'000);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  auto sent = std::async(std::launch::async, [&] {
    return send_bulk(idle.address(), parts, {.stall_seconds = kFarSeconds}, stop.get_token());
  });
  std::byte first;
  CHECK(idle.receive({&first, 1}, {}));
  stop.request_stop();
  CHECK_FALSE(received.get());
  CHECK_FALSE(sent.get());
}

// Returns whether `attempt`, which returns how many seconds a stop took, is below the limit once. A
// loaded machine may hold up an attempt, but what waits for the limit does so in each.
template <typename Attempt>
bool ends_within(double limit_seconds, Attempt&& attempt) {
  for (int i = 0; i < 5; ++i) {
    if (attempt() < limit_seconds) return true;
  }
  return false;
}

TEST_CASE("a stop does not wait for a visitor's line nor for the receiver's answer") {
  // Either may take 5 s.
  CHECK(ends_within(3, [] {
    std::stop_source stop;
    BulkReceiver receiver("127.0.0.1", 0, kFarSeconds, kFarSeconds);
    const auto address = receiver.address();
    const auto silent =
        connect_tcp(SocketAddress(address.ip, address.port), deadline_after(kPatienceSeconds));
    std::byte byte;
    auto received = std::async(std::launch::async, [&] {
      return receiver.receive({&byte, 1}, stop.get_token());
    });
    // It takes the connection and its line, and answers nothing.
    const auto listener = listen_tcp(SocketAddress("127.0.0.1", 0));
    const BulkAddress mute{"127.0.0.1", SocketAddress::local_of(listener.fd())->port(), "token"};
    auto sent = std::async(std::launch::async, [&] {
      const std::array<std::span<const std::byte>, 0> parts = {};
      return send_bulk(mute, parts, {.stall_seconds = kFarSeconds}, stop.get_token());
    });
    const auto sender = take_sender(listener, mute.token);
    const auto began = std::chrono::steady_clock::now();
    stop.request_stop();
    CHECK_FALSE(received.get());
    CHECK_FALSE(sent.get());
    return seconds_since(began);
  }));
}

TEST_CASE("a stop does not wait for a connection that is being made") {
  // A listener whose queue is full answers no further connection.
  const auto listener = listen_tcp(SocketAddress("127.0.0.1", 0), 0);
  const auto target = *SocketAddress::local_of(listener.fd());
  std::list<Socket> queued;
  bool is_full = false;
  while (!is_full && queued.size() < 100) {
    try {
      queued.push_back(connect_tcp(target, deadline_after(0.3)));
    } catch (const TcpError&) {
      is_full = true;
    }
  }
  REQUIRE(is_full);
  // An attempt to connect takes 2 s.
  CHECK(ends_within(1, [&] {
    std::stop_source stop;
    auto sent = std::async(std::launch::async, [&] {
      const std::array<std::span<const std::byte>, 0> parts = {};
      const BulkAddress address{target.ip(), target.port(), "token"};
      return send_bulk(address, parts, {.stall_seconds = kFarSeconds}, stop.get_token());
    });
    const auto began = std::chrono::steady_clock::now();
    stop.request_stop();
    CHECK_FALSE(sent.get());
    return seconds_since(began);
  }));
}

TEST_CASE("a limited transfer takes its time") {
  const auto bytes = content(3'000'000);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  BulkReceiver receiver("127.0.0.1", 0, 20, 20);
  std::vector<std::byte> got(bytes.size());
  auto received = receive_all(receiver, got);
  const auto began = std::chrono::steady_clock::now();
  // 3 MB at 24 Mbit/s are 1 s; the kernel lets a first burst pass.
  CHECK(send_bulk(receiver.address(), parts, {.stall_seconds = 20, .bits_per_second = 24e6}, {}));
  CHECK(received.get());
  CHECK(got == bytes);
  CHECK(seconds_since(began) > 0.5);
}

}  // namespace
}  // namespace farstep::wan
