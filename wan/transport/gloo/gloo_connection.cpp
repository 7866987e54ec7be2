// A message that is given up closes the lanes (GlooTransport), since its buffers end before the
// stream does. So a connection that is still whole at the end of a mesh has no message under way.
#include "wan/transport/gloo/gloo_connection.h"

#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <future>
#include <utility>

namespace farstep::wan {

// Buffers go before the contexts that they belong to, and after the lanes are closed.
GlooConnection::~GlooConnection() {
  end();
  close();
  past_watches_.clear();
}

// A mesh that was offered the connection may have failed before it took it.
void GlooConnection::begin(uint64_t generation) {
  end();
  watch_ = std::make_unique<PeerWatch>(*lanes.front().context, generation);
  sent_bytes = received_bytes = 0;
  for (auto& lane : lanes) lane.stall = {};
  if (losses) losses.emplace();
}

void GlooConnection::end() {
  for (auto& lane : lanes) lane.line.reset();
  if (!watch_) return;
  watch_->request_stop();
  watch_->join();
  past_watches_.push_back(std::move(watch_));
}

bool GlooConnection::is_clean() const {
  return !is_spoiled_ && std::ranges::all_of(lanes, [](const GlooLane& lane) {
    return lane.socket && lane.socket->is_sound();
  });
}

void GlooConnection::close() {
  is_spoiled_ = true;
  for (auto& lane : lanes) {
    if (lane.context && lane.context->getPair(kPeer)) lane.context->getPair(kPeer)->close();
  }
}

// Without a policy the last ones are closed by this thread if the process has no other left.
void close_all(std::vector<GlooConnectionPtr> connections) {
  std::vector<std::future<void>> pending;
  for (auto& connection : connections) {
    pending.push_back(std::async([&connection] { connection.reset(); }));
  }
  for (const auto& closed : pending) closed.wait();
}

}  // namespace farstep::wan
