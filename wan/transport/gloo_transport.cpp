#include "wan/transport/gloo_transport.h"

#include <signal.h>

#include <algorithm>
#include <chrono>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"
#include "wan/transport/gloo_connections.h"

namespace farstep {

namespace {

using std::chrono::milliseconds;

// A message is cut so that its deadline is by progress: each piece has stall_seconds.
constexpr std::size_t kChunkBytes = 4 << 20;
constexpr uint64_t kHelloTag = ~uint64_t{0};  // make_tag() gives it for no real phase

// Gloo calls std::terminate when a message is longer than the receive that it meets. With the size
// in the slot such a pair never meets, and its deadline reports it.
uint64_t slot_for(uint64_t tag, std::size_t bytes) {
  return mix(tag ^ mix(bytes));
}

// What two sites tell each other first: proof that messages pass, and between the right two.
struct Hello {
  uint64_t generation;
  uint64_t rank;
  bool operator==(const Hello&) const = default;
};

class Message : public Transfer {
 public:
  Message(GlooConnections& connections, int peer, bool is_send, std::span<std::byte> bytes,
          double stall_seconds)
      : connections_(connections),
        link_(connections.to(peer)),
        peer_(peer),
        is_send_(is_send),
        bytes_(bytes),
        chunks_((bytes.size() + kChunkBytes - 1) / kChunkBytes),
        stall_(to_milliseconds(stall_seconds)) {}

  ~Message() override {
    if (buffer_ == nullptr) return;
    connections_.dismiss(buffer_.get());
    if (waited_chunks_ == chunks_) return;
    // Before the buffer goes: Gloo's event thread would spin on bytes that have nowhere to go.
    connections_.give_up(peer_);
  }

  void start(uint64_t tag) {
    connections_.throw_if_dead();
    if (chunks_ == 0) return;
    connections_.run(peer_, [&] {
      buffer_ = link_.context->createUnboundBuffer(bytes_.data(), bytes_.size());
      connections_.enroll(buffer_.get());
      const auto slot = slot_for(tag, bytes_.size());
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        is_send_ ? buffer_->send(peer_, slot, chunk * kChunkBytes, size_of_chunk(chunk))
                 : buffer_->recv(peer_, slot, chunk * kChunkBytes, size_of_chunk(chunk));
      }
    });
  }

  void wait() override {
    connections_.throw_if_dead();
    for (; waited_chunks_ < chunks_; ++waited_chunks_) {
      wait_for_chunk();
      connections_.throw_if_dead();
      (is_send_ ? link_.sent_bytes : link_.received_bytes) += size_of_chunk(waited_chunks_);
    }
  }

 private:
  std::size_t size_of_chunk(std::size_t chunk) const {
    return std::min(kChunkBytes, bytes_.size() - chunk * kChunkBytes);
  }

  void wait_for_chunk() {
    const auto start = std::chrono::steady_clock::now();
    try {
      is_send_ ? buffer_->waitSend(nullptr, stall_) : buffer_->waitRecv(nullptr, stall_);
    } catch (const std::exception& error) {
      const bool has_stalled = std::chrono::steady_clock::now() - start >= stall_;
      connections_.fail(peer_, has_stalled
                                   ? fmt::format("no progress of a message for {} s",
                                                 std::chrono::duration<double>(stall_).count())
                                   : std::string(error.what()));
    }
  }

  GlooConnections& connections_;
  GlooConnection& link_;
  const int peer_;
  const bool is_send_;
  const std::span<std::byte> bytes_;
  const std::size_t chunks_;
  const milliseconds stall_;
  std::size_t waited_chunks_ = 0;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

std::unique_ptr<Transfer> start_message(GlooConnections& connections, int peer, bool is_send,
                                        uint64_t tag, std::span<std::byte> bytes,
                                        double stall_seconds) {
  auto message = std::make_unique<Message>(connections, peer, is_send, bytes, stall_seconds);
  message->start(tag);
  return message;
}

void exchange_hellos(GlooConnections& connections) {
  const auto& mesh = connections.mesh();
  Hello own{mesh.generation, static_cast<uint64_t>(mesh.rank)};
  std::vector<Hello> hellos(mesh.sites.size());
  std::vector<std::unique_ptr<Transfer>> messages;
  const auto start = [&](int peer, bool is_send, Hello& hello) {
    messages.push_back(start_message(connections, peer, is_send, kHelloTag,
                                     std::as_writable_bytes(std::span(&hello, 1)),
                                     mesh.connect_seconds));
  };
  for (const int peer : connections.peers()) {
    start(peer, false, hellos[peer]);
    start(peer, true, own);
  }
  for (auto& message : messages) message->wait();
  for (const int peer : connections.peers()) {
    if (hellos[peer] != Hello{mesh.generation, static_cast<uint64_t>(peer)}) {
      connections.fail(peer, "another site or generation answers there");
    }
    connections.to(peer).sent_bytes = connections.to(peer).received_bytes = 0;
  }
  connections.throw_if_dead();
}

}  // namespace

GlooTransport::GlooTransport(const MeshOptions& mesh, const std::vector<PeerLink>& links,
                             double stall_seconds, Store& store)
    : connections_(std::make_unique<GlooConnections>(mesh)), stall_seconds_(stall_seconds) {
  FARSTEP_CHECK(links.empty() || links.size() == mesh.sites.size(), "{} links for {} sites",
                links.size(), mesh.sites.size());
  ::signal(SIGPIPE, SIG_IGN);
  connections_->open(links, store);
  exchange_hellos(*connections_);
}

GlooTransport::~GlooTransport() = default;

int GlooTransport::rank() const {
  return connections_->mesh().rank;
}

int GlooTransport::size() const {
  return connections_->mesh().size();
}

const std::string& GlooTransport::site(int rank) const {
  return connections_->mesh().sites.at(rank);
}

std::unique_ptr<Transfer> GlooTransport::send(int peer, uint64_t tag,
                                              std::span<const std::byte> bytes) {
  const std::span writable(const_cast<std::byte*>(bytes.data()), bytes.size());  // Gloo asks for it
  return start_message(*connections_, peer, true, tag, writable, stall_seconds_);
}

std::unique_ptr<Transfer> GlooTransport::receive(int peer, uint64_t tag,
                                                 std::span<std::byte> bytes) {
  return start_message(*connections_, peer, false, tag, bytes, stall_seconds_);
}

void GlooTransport::abort(const std::string& site, const std::string& reason) {
  connections_->abort(site, reason);
}

LinkCounters GlooTransport::counters(int peer) const {
  const auto& link = connections_->to(peer);
  return {link.sent_bytes, link.received_bytes};
}

SocketBytes GlooTransport::socket_bytes() const {
  return connections_->socket_bytes();
}

}  // namespace farstep
