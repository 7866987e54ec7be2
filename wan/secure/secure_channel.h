// A TLS 1.3 connection between two sites that have shown each other their certificates.
//
// For an event loop: once connected, no call waits. One thread at a time uses it. A call that threw
// leaves the channel unusable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "wan/secure/credentials.h"
#include "wan/sockets/tcp.h"

namespace farstep::wan {

class SecureChannel {
 public:
  // Makes the handshake with `site` over a connection, and waits until that site has let this one
  // in. Throws PeerError, which names the site and the reason: of another name, authority or run,
  // expired, revoked, or it refused this site. The listener reads `topic`, a host name that says
  // what the channel is for; it crosses the network in the clear. `credentials` may go before the
  // channel.
  static SecureChannel connect(Socket socket, const std::string& site, const std::string& topic,
                               const Credentials& credentials, Deadline deadline);

  // Takes a connection whose handshake is finished and whose peer is `peer`.
  SecureChannel(Socket socket, SslHandle ssl, std::string peer);

  // Returns the site at the other end, as its certificate says.
  const std::string& peer() const { return peer_; }
  // Returns its certificate, which lives as long as the channel.
  const X509* peer_certificate() const { return SSL_get0_peer_certificate(ssl_.get()); }
  // On the listener's side: the topic that the connecting site sent; empty if none.
  std::string topic() const;
  // The socket to poll.
  int fd() const { return socket_.fd(); }
  // Sends what fits now, and returns how many bytes. If it is not all, the next call must begin
  // with the first byte that was not sent.
  std::size_t send_now(std::span<const std::byte> bytes);
  // Returns how many bytes were here, 0 if none; nullopt if the peer closed the channel. A
  // connection that ends without that is a PeerError: somebody may have cut it.
  std::optional<std::size_t> receive_now(std::span<std::byte> bytes);
  // Uses a new key for what is sent from now on. Happens by itself after each 64 GiB, because a key
  // of AES-GCM is good for some hundred gigabytes (RFC 8446, 5.5).
  void renew_key();
  // Sends the notice that no more bytes come, waiting until the deadline for room.
  void close(Deadline deadline);

 private:
  // What came of one SSL call: SSL_ERROR_NONE and a count, _ZERO_RETURN, or what it waits for.
  struct Outcome {
    int wanted;
    std::size_t count = 0;
  };

  auto sending(std::span<const std::byte> bytes);
  template <typename Step>
  Outcome attempt(const char* doing, Step step);
  template <typename Step>
  std::size_t repeat(const char* doing, Step step, Deadline deadline);
  void receive(std::span<std::byte> bytes, Deadline deadline);

  Socket socket_;
  SslHandle ssl_;
  std::string peer_;
  uint64_t bytes_under_key_ = 0;
  bool is_sending_waiting_ = false;  // OpenSSL has the beginning of a record
};

// What a listener sends when it has let a site in. A TLS 1.3 client has finished its handshake
// before the other end has seen its certificate, so only this tells it.
inline constexpr std::string_view kWelcome = "farstep 1\n";

// Waits until `fd` is ready for what an SSL call wants, an SSL_ERROR_WANT_*. Returns false at the
// deadline.
bool wait_for_ssl(int fd, int wanted, Deadline deadline);

}  // namespace farstep::wan
