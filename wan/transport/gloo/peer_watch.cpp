// Gloo has no callback for a broken connection. A receive that never gets a message ends when it
// breaks. Gloo's thread writes what it receives, so only the watch reads that, when the receive has
// ended.
#include "wan/transport/gloo/peer_watch.h"

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
#include <utility>

namespace farstep::wan {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kForever = std::chrono::hours(24 * 365);  // Gloo takes no infinite time
// What a peer said before it closed is in this process when the end of the connection is. The
// thread has it as soon as it runs, which takes long on a loaded machine. Without it this site
// would name the wrong one as lost. A peer that stalls sends none, and is named that much later.
constexpr milliseconds kPatience(2000);

// Not used by messages, whose slots are hashes.
uint64_t slot_of(uint64_t generation) {
  return ~generation;
}

}  // namespace

PeerWatch::PeerWatch(gloo::transport::Context& context, uint64_t generation)
    : slot_(slot_of(generation)),
      farewell_(context.createUnboundBuffer(&sent_, sizeof(sent_))),
      receive_(context.createUnboundBuffer(&received_, sizeof(received_))) {
  receive_->recv(kPeer, slot_);
}

void PeerWatch::start(Ended ended) {
  {
    const std::lock_guard lock(mutex_);
    is_watching_ = true;
  }
  thread_ = std::thread([this, ended = std::move(ended)] { watch(ended); });
}

void PeerWatch::request_stop() {
  if (thread_.joinable()) receive_->abortWaitRecv();
}

void PeerWatch::join() {
  if (thread_.joinable()) thread_.join();
}

void PeerWatch::watch(const Ended& ended) {
  std::string reason;
  try {
    const bool has_come = receive_->waitRecv(nullptr, kForever);
    finish(has_come ? received_ : -1);
    if (has_come) reason = "it gave up";
  } catch (const std::exception& error) {
    finish(-1);
    reason = error.what();
    if (reason.find("Application timeout") != std::string::npos) return;
  }
  if (!reason.empty()) ended(reason);
}

void PeerWatch::finish(int64_t lost) {
  {
    const std::lock_guard lock(mutex_);
    is_watching_ = false;
    lost_by_peer_ = lost;
  }
  finished_.notify_all();
}

int64_t PeerWatch::lost_by_peer() {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, kPatience, [this] { return !is_watching_; });
  return lost_by_peer_;
}

void PeerWatch::say_farewell(int64_t lost) {
  sent_ = lost;
  try {
    farewell_->send(kPeer, slot_);
  } catch (const std::exception&) {
    // This connection is broken too, and its peer notices that.
  }
}

}  // namespace farstep::wan
