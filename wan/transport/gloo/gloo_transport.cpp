#include "wan/transport/gloo/gloo_transport.h"

#include <signal.h>

#include <algorithm>
#include <chrono>

#include "trainer/base/error.h"
#include "trainer/base/mix.h"
#include "wan/transport/gloo/gloo_connections.h"
#include "wan/transport/gloo/gloo_meeting.h"

namespace farstep::wan {

namespace {

using std::chrono::milliseconds;

// A message is cut for two reasons: stall_seconds limits each piece, so a long message may take
// longer; and several lanes share it. A megabyte at 10 Mbit/s takes 0.8 s, far below the usual
// stall deadline. Smaller pieces cost more notices.
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr uint32_t kHelloPhase = ~uint32_t{0};

// Gloo calls std::terminate() when a message is longer than the receive that it matches. The slot
// contains the size, so such a pair never matches, and the deadline reports it.
uint64_t slot_for(const Tag& tag, std::size_t bytes) {
  uint64_t slot = mix(bytes);
  for (const uint64_t part : {tag.generation, tag.round, uint64_t{tag.fragment},
                              uint64_t{tag.phase}, uint64_t{tag.chunk}}) {
    slot = mix(slot ^ part);
  }
  return slot;
}

// The first message of a mesh in each direction of a lane. It proves that messages pass, and that
// the right peer answers.
struct Hello {
  uint64_t generation;
  uint64_t rank;
  bool operator==(const Hello&) const = default;
};

class Message : public Transfer {
 public:
  Message(GlooConnections& connections, int peer, bool is_send, const Tag& tag,
          std::span<std::byte> bytes, double stall_seconds)
      : connections_(connections),
        link_(connections.to(peer)),
        peer_(peer),
        is_send_(is_send),
        tag_(tag),
        bytes_(bytes),
        pieces_((bytes.size() + kPieceBytes - 1) / kPieceBytes),
        stall_(to_milliseconds(stall_seconds)) {}

  ~Message() override {
    for (auto& buffer : buffers_) connections_.dismiss(buffer.get());
    // A message whose start failed, or that was waited for, has nothing under way.
    if (buffers_.empty() || waited_pieces_ == pieces_) return;
    // Closes the connection before the buffers are freed: otherwise Gloo's event thread would spin
    // on bytes without a destination.
    connections_.give_up(peer_);
  }

  // All pieces start at once, so that every lane is busy; wait() then takes them in order.
  void start() {
    connections_.throw_if_dead();
    if (is_send_ && pieces_ > 0) connections_.begin_send();
    connections_.run(peer_, [&] {
      const auto slot = slot_for(tag_, bytes_.size());
      for (std::size_t piece = 0; piece < pieces_; ++piece) {
        if (piece < link_.lanes.size()) {
          // One buffer a lane serves all its pieces: each piece is a range of the same memory.
          buffers_.push_back(
              lane_of(piece).context->createUnboundBuffer(bytes_.data(), bytes_.size()));
          connections_.enroll(buffers_.back().get());
        }
        is_send_ ? buffer_of(piece).send(kPeer, slot, piece * kPieceBytes, size_of(piece))
                 : buffer_of(piece).recv(kPeer, slot, piece * kPieceBytes, size_of(piece));
      }
    });
  }

  void wait() override {
    connections_.throw_if_dead();
    for (; waited_pieces_ < pieces_; ++waited_pieces_) {
      wait_for(waited_pieces_);
      // A broken connection shows only in the transport's state, since fail() does not throw.
      connections_.throw_if_dead();
      (is_send_ ? link_.sent_bytes : link_.received_bytes) += size_of(waited_pieces_);
      if (is_send_ && waited_pieces_ + 1 == pieces_) connections_.end_send(peer_, bytes_.size());
    }
  }

 private:
  std::size_t size_of(std::size_t piece) const {
    return std::min(kPieceBytes, bytes_.size() - piece * kPieceBytes);
  }

  GlooLane& lane_of(std::size_t piece) {
    // The first lane depends on the chunk, so that small messages use all lanes in turn.
    return link_.lanes[(tag_.chunk + piece) % link_.lanes.size()];
  }
  gloo::transport::UnboundBuffer& buffer_of(std::size_t piece) {
    return *buffers_[piece % link_.lanes.size()];
  }

  // The elapsed time tells a stall from a broken connection; Gloo reports both as exceptions.
  void wait_for(std::size_t piece) {
    const auto start = std::chrono::steady_clock::now();
    try {
      is_send_ ? buffer_of(piece).waitSend(nullptr, stall_)
               : buffer_of(piece).waitRecv(nullptr, stall_);
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
  const Tag tag_;
  const std::span<std::byte> bytes_;
  const std::size_t pieces_;
  const milliseconds stall_;
  std::size_t waited_pieces_ = 0;
  // One for each lane that carries a piece, in order of the first pieces.
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers_;
};

std::unique_ptr<Transfer> start_message(GlooConnections& connections, int peer, bool is_send,
                                        const Tag& tag, std::span<std::byte> bytes,
                                        double stall_seconds) {
  auto message = std::make_unique<Message>(connections, peer, is_send, tag, bytes, stall_seconds);
  message->start();
  return message;
}

// Over a new connection the hello of any generation is taken, as a transport of an older one may
// dial: it differs then. Over a kept one that of an older one may have come before.
Tag hello_tag(GlooConnections& connections, int peer, std::size_t lane) {
  return {.generation = connections.is_kept(peer) ? connections.mesh().generation : 0,
          .phase = kHelloPhase,
          .chunk = static_cast<uint32_t>(lane)};
}

void exchange_hellos(GlooConnections& connections) {
  const auto& mesh = connections.mesh();
  Hello own{mesh.generation, static_cast<uint64_t>(mesh.rank)};
  std::vector<std::vector<Hello>> hellos(mesh.sites.size(),
                                         std::vector<Hello>(static_cast<std::size_t>(mesh.lanes)));
  std::vector<std::unique_ptr<Transfer>> messages;
  const auto start = [&](int peer, std::size_t lane, bool is_send, Hello& hello) {
    messages.push_back(start_message(connections, peer, is_send, hello_tag(connections, peer, lane),
                                     std::as_writable_bytes(std::span(&hello, 1)),
                                     mesh.connect_seconds));
  };
  for (const int peer : connections.peers()) {
    for (std::size_t lane = 0; lane < hellos[peer].size(); ++lane) {
      start(peer, lane, false, hellos[peer][lane]);
      start(peer, lane, true, own);
    }
  }
  for (auto& message : messages) message->wait();
  for (const int peer : connections.peers()) {
    const Hello expected{mesh.generation, static_cast<uint64_t>(peer)};
    for (const auto& hello : hellos[peer]) {
      if (hello != expected) connections.fail(peer, "another site or generation answers there");
    }
    // The counts of a transport do not include the hellos.
    connections.to(peer).sent_bytes = connections.to(peer).received_bytes = 0;
  }
  connections.throw_if_dead();
}

}  // namespace

GlooTransport::GlooTransport(const MeshOptions& mesh, const std::vector<PeerLink>& links,
                             double stall_seconds, Store& store, KeptConnections* kept)
    : own_kept_(kept == nullptr ? std::make_unique<KeptConnections>() : nullptr),
      connections_(std::make_unique<GlooConnections>(mesh, kept == nullptr ? *own_kept_ : *kept)),
      stall_seconds_(stall_seconds) {
  FARSTEP_CHECK(links.empty() || links.size() == mesh.sites.size(), "{} links for {} sites",
                links.size(), mesh.sites.size());
  // Gloo's writes can raise it. The failed write is an exception anyway.
  ::signal(SIGPIPE, SIG_IGN);
  try {
    connections_->open(links, store);
    exchange_hellos(*connections_);
  } catch (const PeerError& error) {
    connections_->give_up_all(error.site(), error.what());
    throw;
  } catch (const std::exception& error) {
    connections_->give_up_all("", error.what());
    throw;
  }
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

std::unique_ptr<Transfer> GlooTransport::send(int peer, const Tag& tag,
                                              std::span<const std::byte> bytes) {
  const std::span writable(const_cast<std::byte*>(bytes.data()), bytes.size());  // Gloo's interface
  return start_message(*connections_, peer, true, tag, writable, stall_seconds_);
}

std::unique_ptr<Transfer> GlooTransport::receive(int peer, const Tag& tag,
                                                 std::span<std::byte> bytes) {
  return start_message(*connections_, peer, false, tag, bytes, stall_seconds_);
}

void GlooTransport::abort(const std::string& site, const std::string& reason) {
  connections_->abort(site, reason);
}

LinkState GlooTransport::link(int peer) const {
  return connections_->link(peer);
}

}  // namespace farstep::wan
