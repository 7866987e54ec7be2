#include "tests/wan/transport/meshes.h"

#include "tests/support/memory_store.h"
#include "tests/support/memory_transport.h"
#include "tests/wan/transport/run_ranks.h"

namespace farstep::wan {

std::vector<std::string> site_names(int n) {
  std::vector<std::string> names;
  for (int rank = 0; rank < n; ++rank) names.push_back("node" + std::to_string(rank + 1));
  return names;
}

MeshOptions loopback_mesh(int n, int rank, const std::string& address) {
  MeshOptions mesh;
  mesh.rank = rank;
  mesh.sites = site_names(n);
  mesh.address = address;
  mesh.generation = 7;
  mesh.connect_seconds = 5;
  return mesh;
}

Transports memory_mesh(int n, double stall_seconds) {
  return connect_in_memory(site_names(n), stall_seconds);
}

Transports gloo_mesh(int n, double stall_seconds, const std::string& address, int lanes) {
  MemoryStore store(10);
  const std::vector<PeerLink> links(n, PeerLink{address, 0});
  return run_ranks(n, [&](int rank) -> std::unique_ptr<Transport> {
    auto options = loopback_mesh(n, rank, address);
    options.lanes = lanes;
    return std::make_unique<GlooTransport>(options, links, stall_seconds, store);
  });
}

std::vector<std::byte> pattern(int from, int to, std::size_t bytes, int salt) {
  std::vector<std::byte> content(bytes);
  auto state = static_cast<uint32_t>(1 + from + 16 * to + 256 * salt);
  for (auto& byte : content) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return content;
}

}  // namespace farstep::wan
