// Connected transports of N sites node1 .. nodeN for tests, every implementation alike.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "wan/transport/gloo/gloo_transport.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

using Transports = std::vector<std::unique_ptr<Transport>>;

std::vector<std::string> site_names(int n);

// Options of one of N sites on the loopback interface, with short deadlines.
MeshOptions loopback_mesh(int n, int rank, const std::string& address = "127.0.0.1");

Transports memory_mesh(int n, double stall_seconds = 20);
Transports gloo_mesh(int n, double stall_seconds = 20, const std::string& address = "127.0.0.1",
                     int lanes = 1);

// Bytes that depend on who sends what to whom.
std::vector<std::byte> pattern(int from, int to, std::size_t bytes, int salt = 0);

// Runs `action`; the PeerError's site and message as "SITE: MESSAGE", or "" if it threw none.
template <typename Action>
std::string peer_error(Action action) {
  try {
    action();
  } catch (const PeerError& error) {
    return error.site() + ": " + error.what();
  }
  return "";
}

}  // namespace farstep::wan
