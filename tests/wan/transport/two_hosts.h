// Two processes in network namespaces of their own, joined by a cable: two machines in one test.
#pragma once

#include <string>

#include "tests/wan/transport/hosts.h"

namespace farstep::wan {

// Why two hosts cannot be had here (they need root and iproute2), or "".
std::string two_hosts_obstacle();

// Runs `host` as run_hosts() does, with addresses 10.77.0.1 and 10.77.0.2, fd77::1 and fd77::2 on
// interface "cable" beside the loopback. The result is "0: <text of host 0>\n1: <text of host
// 1>\n". The namespaces and the cable end with the processes.
std::string run_two_hosts(const Host& host);

}  // namespace farstep::wan
