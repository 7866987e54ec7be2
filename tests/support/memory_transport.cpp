#include "tests/support/memory_transport.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "trainer/base/error.h"

namespace farstep {

namespace {

struct Message {
  int owner;
  int peer;
  bool is_send;
  wan::Tag tag;
  std::byte* data;  // only read if is_send
  std::size_t bytes;
  bool done = false;

  // Sender, receiver and tag, which must be equal on both sides.
  auto route() const {
    return is_send ? std::tuple(owner, peer, tag) : std::tuple(peer, owner, tag);
  }
};

// Matches the two sides of each message. Thread-safe.
class Hub {
 public:
  Hub(std::vector<std::string> sites, double stall_seconds)
      : sites_(std::move(sites)), stall_(stall_seconds), endpoints_(sites_.size()) {}

  const std::vector<std::string>& sites() const { return sites_; }

  // The side that comes second copies the bytes and completes both.
  void post(const std::shared_ptr<Message>& message) {
    const std::lock_guard lock(mutex_);
    throw_if_dead(message->owner);
    auto& queue = waiting_[message->route()];
    if (queue.empty() || queue.front()->is_send == message->is_send) {
      queue.push_back(message);
      return;
    }
    auto& other = *queue.front();
    FARSTEP_CHECK(other.bytes == message->bytes, "{} and {} disagree on a message's size: {}, {}",
                  sites_[message->owner], sites_[message->peer], message->bytes, other.bytes);
    const auto& from = message->is_send ? *message : other;
    std::memcpy((message->is_send ? other : *message).data, from.data, from.bytes);
    message->done = other.done = true;
    queue.pop_front();
    changed_.notify_all();
  }

  // Bytes count when the message is complete, as in a real transport.
  void wait(const Message& message) {
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return message.done || endpoints_[message.owner].failure; };
    if (!changed_.wait_for(lock, stall_, is_over)) {
      const auto& site = sites_[message.peer];
      fail(message.owner, site,
           fmt::format("no byte between {} and {} for {} s", sites_[message.owner], site,
                       stall_.count()));
    }
    throw_if_dead(message.owner);
    auto& link = endpoints_[message.owner].links[message.peer];
    (message.is_send ? link.sent_bytes : link.received_bytes) += message.bytes;
  }

  // A message whose other side has not come leaves the queue; then the whole transport fails, as a
  // real one does.
  void give_up(const std::shared_ptr<Message>& message) {
    const std::lock_guard lock(mutex_);
    if (message->done) return;
    auto& queue = waiting_[message->route()];
    std::erase(queue, message);
    tell_peers(message->owner);
    fail(message->owner, sites_[message->peer],
         fmt::format("a transfer with {} was given up", sites_[message->peer]));
  }

  void abort(int rank, const std::string& site, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    fail(rank, site, reason);
    tell_peers(rank);
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    tell_peers(rank);
  }

  wan::LinkState link(int rank, int peer) {
    const std::lock_guard lock(mutex_);
    return endpoints_[rank].links[peer];
  }

 private:
  struct Endpoint {
    std::optional<PeerError> failure;
    std::map<int, wan::LinkState> links;  // by peer
  };

  // The caller of each function below holds mutex_.
  void throw_if_dead(int rank) const {
    if (endpoints_[rank].failure) throw PeerError(*endpoints_[rank].failure);
  }
  void fail(int rank, const std::string& site, const std::string& reason) {
    if (!endpoints_[rank].failure) endpoints_[rank].failure.emplace(site, reason);
    changed_.notify_all();
  }
  // Fails all peers. Each loses the site that `rank` lost, or `rank` if it lost none.
  void tell_peers(int rank) {
    const auto& failure = endpoints_[rank].failure;
    for (int peer = 0; peer < static_cast<int>(sites_.size()); ++peer) {
      if (peer == rank) continue;
      if (failure && failure->site() != sites_[peer]) {
        fail(peer, failure->site(), failure->what());
      } else {
        fail(peer, sites_[rank], sites_[rank] + " closed its connections");
      }
    }
  }

  const std::vector<std::string> sites_;
  const std::chrono::duration<double> stall_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Endpoint> endpoints_;
  // Messages whose other side is missing, by route. All messages of one route have the same
  // direction.
  std::map<std::tuple<int, int, wan::Tag>, std::deque<std::shared_ptr<Message>>> waiting_;
};

class MemoryTransfer : public wan::Transfer {
 public:
  MemoryTransfer(std::shared_ptr<Hub> hub, const Message& message)
      : hub_(std::move(hub)), message_(std::make_shared<Message>(message)) {
    message_->done = message.bytes == 0;
    if (!message_->done) hub_->post(message_);
  }
  ~MemoryTransfer() override { hub_->give_up(message_); }
  void wait() override { hub_->wait(*message_); }

 private:
  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<Message> message_;
};

class MemoryTransport : public wan::Transport {
 public:
  MemoryTransport(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~MemoryTransport() override { hub_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->sites().size()); }
  const std::string& site(int rank) const override { return hub_->sites().at(rank); }

  std::unique_ptr<wan::Transfer> send(int peer, const wan::Tag& tag,
                                      std::span<const std::byte> bytes) override {
    return start(peer, tag, true, {const_cast<std::byte*>(bytes.data()), bytes.size()});
  }
  std::unique_ptr<wan::Transfer> receive(int peer, const wan::Tag& tag,
                                         std::span<std::byte> bytes) override {
    return start(peer, tag, false, bytes);
  }
  void abort(const std::string& site, const std::string& reason) override {
    hub_->abort(rank_, site, reason);
  }
  wan::LinkState link(int peer) const override {
    check_peer(peer);
    return hub_->link(rank_, peer);
  }

 private:
  void check_peer(int peer) const {
    FARSTEP_CHECK(peer >= 0 && peer < size() && peer != rank_, "no peer with rank {}", peer);
  }
  std::unique_ptr<wan::Transfer> start(int peer, const wan::Tag& tag, bool is_send,
                                       std::span<std::byte> bytes) {
    check_peer(peer);
    return std::make_unique<MemoryTransfer>(
        hub_, Message{rank_, peer, is_send, tag, bytes.data(), bytes.size()});
  }

  const std::shared_ptr<Hub> hub_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<wan::Transport>> connect_in_memory(
    const std::vector<std::string>& sites, double stall_seconds) {
  const auto hub = std::make_shared<Hub>(sites, stall_seconds);
  std::vector<std::unique_ptr<wan::Transport>> transports;
  for (int rank = 0; rank < static_cast<int>(sites.size()); ++rank) {
    transports.push_back(std::make_unique<MemoryTransport>(hub, rank));
  }
  return transports;
}

}  // namespace farstep
