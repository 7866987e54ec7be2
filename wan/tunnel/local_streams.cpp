// Backpressure goes from end to end. A connection is read only if its stream has room. A stream
// gets room when the connection at the other end has taken its bytes. So memory is bounded, and a
// slow reader holds up its own stream alone.
#include "wan/tunnel/local_streams.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "wan/sockets/process_sockets.h"

namespace farstep::wan {

namespace {

constexpr double kLocalSeconds = 2;  // to connect within this machine, which takes microseconds
// Of one connection before the next one has its turn.
constexpr int kReadsOfOne = 4;

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

LocalStreams::LocalStreams(std::string peer, bool has_odd_streams, Services& services,
                           TunnelLimits limits)
    : peer_(std::move(peer)),
      services_(services),
      end_(has_odd_streams, limits, *this),
      scratch_(kMostPayload) {}

void LocalStreams::add(Socket local, const std::string& name) {
  // The socket closes when it goes out of scope; whoever connected sees that.
  if (end_.is_full()) return;
  send_without_delay(local.fd());
  locals_[end_.open(name)].socket = std::move(local);
}

void LocalStreams::on_open(uint32_t stream, const std::string& name) {
  const auto service = services_.find(peer_, name);
  if (!service) {
    spdlog::debug("secure link to {}: no service \"{}\" here", peer_, name);
    return end_.reset(stream);
  }
  try {
    // The wait is short, as the service listens on this machine. The source address says who
    // visits.
    auto socket = connect_tcp(service->address, deadline_after(kLocalSeconds), service->source_ip);
    send_without_delay(socket.fd());
    locals_[stream].socket = std::move(socket);
  } catch (const TcpError& error) {
    spdlog::debug("secure link to {}: service \"{}\": {}", peer_, name, error.what());
    end_.reset(stream);
  }
}

void LocalStreams::append_entries(std::vector<pollfd>& entries, bool may_read) {
  polled_.clear();
  for (const auto& [stream, local] : locals_) {
    short events = 0;
    if (may_read && !local.has_read_all && end_.room(stream) > 0) events |= POLLIN;
    if (local.begin < local.waiting.size()) events |= POLLOUT;
    // poll() reports a broken connection always, also one whose bytes have no room yet.
    // A negative descriptor makes poll() skip the entry, and keeps the entries in step with
    // polled_.
    const bool is_of_interest = events != 0 || local.has_read_all;
    entries.push_back({is_of_interest ? local.socket.fd() : -1, events, 0});
    polled_.push_back(stream);
  }
}

void LocalStreams::handle(std::span<const pollfd> entries) {
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    const auto found = locals_.find(polled_[i]);
    if (found == locals_.end() || entries[i].revents == 0) continue;
    const auto stream = found->first;
    auto& local = found->second;
    if ((entries[i].revents & (POLLERR | POLLHUP)) != 0 && local.has_read_all) {
      // It takes no more bytes, and has none.
      end_.reset(stream);
      drop(stream);
      continue;
    }
    if ((entries[i].events & POLLOUT) != 0) write_waiting(stream, local);
    if ((entries[i].events & POLLIN) != 0 && locals_.contains(stream)) read(stream, local);
  }
}

void LocalStreams::read(uint32_t stream, Local& local) {
  for (int i = 0; i < kReadsOfOne; ++i) {
    const auto room = std::min(end_.room(stream), scratch_.size());
    if (room == 0) return;
    const auto count = ::recv(local.socket.fd(), scratch_.data(), room, MSG_DONTWAIT);
    if (count > 0) {
      end_.write(stream, std::span(scratch_).first(static_cast<std::size_t>(count)));
      continue;
    }
    if (count < 0 && would_block(errno)) return;
    if (count < 0) {
      end_.reset(stream);
      return drop(stream);
    }
    local.has_read_all = true;
    end_.finish(stream);
    return drop_if_over(stream);
  }
}

std::size_t LocalStreams::write(uint32_t stream, Local& local, std::span<const std::byte> bytes) {
  const auto count =
      ::send(local.socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) {
    end_.consumed(stream, static_cast<std::size_t>(count));
    return static_cast<std::size_t>(count);
  }
  if (would_block(errno)) return 0;
  // The connection has ended: what the peer sends on has no reader.
  end_.reset(stream);
  drop(stream);
  return bytes.size();
}

// Most bytes go on at once, without a copy.
void LocalStreams::on_data(uint32_t stream, std::span<const std::byte> bytes) {
  const auto found = locals_.find(stream);
  if (found == locals_.end()) return;
  auto& local = found->second;
  if (local.waiting.empty()) bytes = bytes.subspan(write(stream, local, bytes));
  if (bytes.empty()) return;
  local.waiting.insert(local.waiting.end(), bytes.begin(), bytes.end());
}

void LocalStreams::write_waiting(uint32_t stream, Local& local) {
  const auto count = write(stream, local, std::span(local.waiting).subspan(local.begin));
  if (!locals_.contains(stream)) return;
  local.begin += count;
  // Each byte moves at most once more than it is written.
  if (2 * local.begin >= local.waiting.size()) {
    local.waiting.erase(local.waiting.begin(),
                        local.waiting.begin() + static_cast<std::ptrdiff_t>(local.begin));
    local.begin = 0;
  }
  if (!local.waiting.empty() || !local.is_peer_done) return;
  // The peer has written its last byte and may still read: only this direction ends.
  ::shutdown(local.socket.fd(), SHUT_WR);
  drop_if_over(stream);
}

void LocalStreams::on_finish(uint32_t stream) {
  const auto found = locals_.find(stream);
  if (found == locals_.end()) return;
  found->second.is_peer_done = true;
  if (!found->second.waiting.empty()) return;
  ::shutdown(found->second.socket.fd(), SHUT_WR);
  drop_if_over(stream);
}

void LocalStreams::on_reset(uint32_t stream) {
  drop(stream);
}

void LocalStreams::drop(uint32_t stream) {
  locals_.erase(stream);
}

void LocalStreams::drop_if_over(uint32_t stream) {
  const auto& local = locals_.at(stream);
  if (local.has_read_all && local.is_peer_done && local.waiting.empty()) drop(stream);
}

bool LocalStreams::is_drained() const {
  return end_.kept_bytes() == 0 &&
         std::ranges::all_of(locals_, [](const auto& entry) { return entry.second.has_read_all; });
}

}  // namespace farstep::wan
