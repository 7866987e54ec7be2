// A site of a lab: a network namespace with the loopback and one interface, whose packets the lab
// reads and writes.
//
// The namespace has no name. It lives through a child process in it, and through the descriptor of
// the interface. The kernel kills the child and closes the descriptor when this process ends in any
// way, so nothing is left behind. Belongs to the process's first thread, whose death kills the
// child.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace farstep::wan {

inline constexpr const char* kSiteInterface = "wan0";

class SiteNamespace {
 public:
  // Makes a site with `address` (host order) of a /24 network on the interface. Throws ConfigError
  // if the kernel refuses: not root, no /dev/net/tun.
  SiteNamespace(uint32_t address, int64_t mtu_bytes);
  ~SiteNamespace();
  SiteNamespace(const SiteNamespace&) = delete;
  SiteNamespace& operator=(const SiteNamespace&) = delete;

  // The process that holds the namespace.
  pid_t holder() const { return holder_; }
  // A descriptor that poll(2) reports as readable when the site has sent a packet.
  int descriptor() const { return tun_; }
  // Reads the site's next packet into `room` and returns its bytes; 0 if there is none.
  std::size_t read_packet(std::span<std::byte> room);
  // Sends a packet to the site through its interface.
  void write_packet(std::span<const std::byte> packet);

 private:
  int tun_ = -1;
  pid_t holder_ = -1;
};

}  // namespace farstep::wan
