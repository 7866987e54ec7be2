// A site of a lab: a network namespace with the loopback and one interface, whose packets the lab
// reads and writes.
//
// The namespace has no name: it lives by a child process in it, which the kernel kills when this
// process ends in whatever way, and by the descriptor of the interface, which goes then as well. So
// nothing is ever left behind. Belongs to the process's first thread, whose death kills the child.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace farstep {

inline constexpr const char* kSiteInterface = "wan0";

class SiteNamespace {
 public:
  // With `address` (host order) of a /24 network on the interface. Throws ConfigError if the kernel
  // does not let us: not root, no /dev/net/tun.
  SiteNamespace(uint32_t address, int64_t mtu_bytes);
  ~SiteNamespace();
  SiteNamespace(const SiteNamespace&) = delete;
  SiteNamespace& operator=(const SiteNamespace&) = delete;

  // The process that holds the namespace.
  pid_t holder() const { return holder_; }
  // Readable in poll(2) when the site has sent a packet.
  int descriptor() const { return tun_; }
  // The bytes of the next packet that the site has sent, written to `room`; 0 if there is none.
  std::size_t read_packet(std::span<std::byte> room);
  // Hands a packet to the site, as its interface's.
  void write_packet(std::span<const std::byte> packet);

 private:
  int tun_ = -1;
  pid_t holder_ = -1;
};

}  // namespace farstep
