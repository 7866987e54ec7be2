#include "tests/wan/transport/transport_contract.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/support/catch.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep::wan {

namespace {

using Bytes = std::vector<std::byte>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void check_all_pairs(const MakeMesh& make, int n, std::size_t bytes) {
  const auto mesh = make(n, 20);
  const auto wrong = run_ranks(n, [&](int rank) {
    std::vector<Bytes> outgoing(n), incoming(n, Bytes(bytes));
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (int peer = 0; peer < n; ++peer) {
      if (peer == rank) continue;
      outgoing[peer] = pattern(rank, peer, bytes);
      transfers.push_back(mesh[rank]->receive(peer, {.phase = 1}, incoming[peer]));
      transfers.push_back(mesh[rank]->send(peer, {.phase = 1}, outgoing[peer]));
    }
    for (auto& transfer : transfers) transfer->wait();
    int wrong_count = 0;
    for (int peer = 0; peer < n; ++peer) {
      if (peer == rank) continue;
      const auto link = mesh[rank]->link(peer);
      wrong_count += incoming[peer] != pattern(peer, rank, bytes);
      wrong_count += link.sent_bytes != bytes || link.received_bytes != bytes;
    }
    const auto uplink = mesh[rank]->uplink();
    wrong_count += uplink.sent_bytes != (n - 1) * bytes;
    wrong_count += uplink.received_bytes != (n - 1) * bytes;
    return wrong_count;
  });
  CHECK(wrong == std::vector<int>(n, 0));
}

void check_links(const MakeMesh& make) {
  constexpr std::size_t kBytes = 300'001;
  const auto mesh = make(3, 20);
  std::vector<LinkState> before;
  for (int peer = 1; peer < 3; ++peer) before.push_back(mesh[0]->link(peer));
  const auto start = std::chrono::steady_clock::now();
  const auto outgoing = pattern(0, 1, kBytes);
  Bytes incoming(kBytes);
  auto receive = mesh[1]->receive(0, {.phase = 1}, incoming);
  auto send = mesh[0]->send(1, {.phase = 1}, outgoing);
  receive->wait();
  CHECK(mesh[0]->link(1).sent_bytes == before[0].sent_bytes);  // its wait() has not returned
  send->wait();
  const auto to_1 = mesh[0]->link(1), to_2 = mesh[0]->link(2), all = mesh[0]->uplink();
  CHECK(to_1.sent_bytes == before[0].sent_bytes + kBytes);
  CHECK(to_1.received_bytes == before[0].received_bytes);
  CHECK(to_1.sending_seconds >= before[0].sending_seconds);
  CHECK(to_2.sent_bytes == before[1].sent_bytes);
  CHECK(all.sent_bytes == to_1.sent_bytes + to_2.sent_bytes);
  CHECK(all.sending_seconds >= std::max(to_1.sending_seconds, to_2.sending_seconds));
  CHECK(all.rtt_seconds >= std::max(to_1.rtt_seconds, to_2.rtt_seconds));
  // The kernel counts in ticks of a few milliseconds.
  CHECK(to_1.sending_seconds - before[0].sending_seconds <= seconds_since(start) + 0.02);
  CHECK(to_1.rtt_seconds >= 0);
  CHECK(to_1.rtt_seconds < 1);
  CHECK(to_1.least_rtt_seconds >= 0);
  CHECK(to_1.least_rtt_seconds <= to_1.rtt_seconds);
  CHECK(all.least_rtt_seconds >= to_1.least_rtt_seconds);
  CHECK_THROWS_AS(mesh[0]->link(0), InternalError);
  CHECK_THROWS_AS(mesh[0]->link(3), InternalError);
  mesh[0]->abort("node3", "over");
  CHECK(mesh[0]->link(1).sent_bytes == to_1.sent_bytes);
}

void check_tags(const MakeMesh& make) {
  const auto mesh = make(2, 20);
  const auto right = run_ranks(2, [&](int rank) {
    const auto a = pattern(0, 1, 100, 1), b = pattern(0, 1, 100, 2), c = pattern(0, 1, 33, 3);
    if (rank == 0) {
      auto first = mesh[0]->send(1, {.phase = 5}, a);
      auto second = mesh[0]->send(1, {.phase = 5}, b);
      auto other = mesh[0]->send(1, {.phase = 6}, c);
      other->wait();
      second->wait();
      first->wait();
      return true;
    }
    Bytes x(100), y(100), z(33);
    auto other = mesh[1]->receive(0, {.phase = 6}, z);
    auto first = mesh[1]->receive(0, {.phase = 5}, x);
    auto second = mesh[1]->receive(0, {.phase = 5}, y);
    second->wait();
    first->wait();
    other->wait();
    return x == a && y == b && z == c;
  });
  CHECK(right == std::vector<bool>{true, true});
}

void check_early_and_late(const MakeMesh& make) {
  const auto mesh = make(2, 20);
  const auto early = pattern(0, 1, 1000, 1), late = pattern(0, 1, 1000, 2);
  Bytes early_in(1000), late_in(1000);
  auto receive_first = mesh[1]->receive(0, {.phase = 1}, early_in);
  auto send_second = mesh[0]->send(1, {.phase = 1}, early);
  auto send_first = mesh[0]->send(1, {.phase = 2}, late);
  auto receive_second = mesh[1]->receive(0, {.phase = 2}, late_in);
  for (auto* transfer : {&receive_first, &send_second, &send_first, &receive_second}) {
    (*transfer)->wait();
  }
  CHECK(early_in == early);
  CHECK(late_in == late);
}

void check_abort(const MakeMesh& make) {
  const auto mesh = make(3, 20);
  Bytes memory(64);
  std::chrono::steady_clock::time_point aborted;
  std::promise<void> waiting;
  std::thread aborter([&] {
    waiting.get_future().wait();
    aborted = std::chrono::steady_clock::now();
    mesh[0]->abort("node3", "the coordinator lost node3");
  });
  auto transfer = mesh[0]->receive(1, {.phase = 1}, memory);
  waiting.set_value();
  const auto error = peer_error([&] { transfer->wait(); });
  aborter.join();
  CHECK(seconds_since(aborted) < 0.1);
  CHECK(error == "node3: the coordinator lost node3");
  CHECK(peer_error([&] { transfer->wait(); }) == error);
  CHECK(peer_error([&] { mesh[0]->send(2, {.phase = 2}, memory); }) == error);
  mesh[0]->abort("node2", "too late");
  CHECK(peer_error([&] { transfer->wait(); }) == error);
}

void check_dying_rank(const MakeMesh& make) {
  auto mesh = make(3, 20);
  std::vector<std::promise<void>> waiting(2);
  std::chrono::steady_clock::time_point died;
  std::thread dying([&] {
    for (auto& promise : waiting) promise.get_future().wait();
    died = std::chrono::steady_clock::now();
    mesh[2].reset();
  });
  const auto errors = run_ranks(2, [&](int rank) {
    // Rank 0 waits for rank 1, which is alive; rank 1 waits for the dying one.
    Bytes memory(64);
    auto transfer = mesh[rank]->receive(rank + 1, {.phase = 1}, memory);
    waiting[rank].set_value();
    return peer_error([&] { transfer->wait(); }).substr(0, 6);
  });
  dying.join();
  CHECK(seconds_since(died) < 1);
  CHECK(errors == std::vector<std::string>{"node3:", "node3:"});
}

void check_stall(const MakeMesh& make) {
  const auto mesh = make(2, 0.2);
  Bytes memory(64);
  auto transfer = mesh[0]->receive(1, {.phase = 1}, memory);
  const auto start = std::chrono::steady_clock::now();
  const auto error = peer_error([&] { transfer->wait(); });
  CHECK(seconds_since(start) > 0.15);
  CHECK(seconds_since(start) < 2);
  CHECK_THAT(error, Catch::StartsWith("node2: ") && Catch::Contains("0.2 s"));
}

void check_given_up(const MakeMesh& make) {
  const auto mesh = make(2, 20);
  const auto content = pattern(0, 1, 100);
  auto send = mesh[0]->send(1, {.phase = 9}, content);
  {
    Bytes memory(64);
    const auto dropped = mesh[1]->receive(0, {.phase = 1}, memory);
  }
  CHECK_THAT(peer_error([&] { mesh[1]->send(0, {.phase = 2}, content); }),
             Catch::StartsWith("node1: ") && Catch::Contains("given up"));
  Bytes memory(64);
  CHECK_THAT(peer_error([&] { mesh[0]->receive(1, {.phase = 2}, memory)->wait(); }),
             Catch::StartsWith("node2: "));
}

void check_size_mismatch(const MakeMesh& make) {
  const auto mesh = make(2, 0.2);
  const auto failed = run_ranks(2, [&](int rank) {
    Bytes memory(rank == 0 ? 100 : 200);
    try {
      auto transfer = rank == 0 ? mesh[0]->receive(1, {.phase = 1}, memory)
                                : mesh[1]->send(0, {.phase = 1}, memory);
      transfer->wait();
    } catch (const Error&) {
      return true;
    }
    return false;
  });
  CHECK(failed == std::vector<bool>{true, true});
}

}  // namespace farstep::wan
