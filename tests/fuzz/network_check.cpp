// What a site reads before the data path is made: a peer's notice and what it found of its links,
// from the coordinator's store, and the line of whoever connects.

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/fuzz/fuzz_input.h"
#include "wan/sockets/tcp.h"
#include "wan/transport/link_faults.h"
#include "wan/transport/network_notice.h"

using namespace farstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto input = text_of(data, size);
  accept_or_refuse([&] {
    const auto notice = wan::read_network_notice(std::string(input), 2);
    if (notice.failure.empty()) wan::SocketAddress(notice.address, notice.ports.at(1));
  });
  accept_or_refuse([&] {
    for (const auto& fault : wan::read_link_faults(std::string(input), 0, 3)) {
      FARSTEP_CHECK(fault.peer == 1 || fault.peer == 2, "peer {}", fault.peer);
    }
  });
  std::array<int, 2> ends{};
  FARSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "errno {}",
                errno);
  const wan::Socket ours(ends[0]);
  {
    const wan::Socket theirs(ends[1]);
    static_cast<void>(::send(theirs.fd(), input.data(), std::min(size, std::size_t{4096}), 0));
  }
  try {
    const auto line = receive_line(ours, wan::deadline_after(1));
    FARSTEP_CHECK(line.size() <= wan::kLongestLine, "a line of {}", line.size());
  } catch (const wan::TcpError&) {
  }
  return 0;
}
